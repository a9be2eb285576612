//! Every state change of BBR, by evidence made by hand.
