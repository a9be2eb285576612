"""Compares the profiles with the programs that they stand for: tcptrace field by field, tshark segment by segment."""
