"""The accuracy of the analysis of captures: recorded runs of the Linux stack, with the fate of every packet, judge it.

`python -m validation captures DIR` prints it. `truth` says what happened in a run, `claims` what the analysis says of
its captures, `scores` compares the two packet by packet, `links` the extracted channel with the emulated one, `whatif`
the predictions with the recordings of the other congestion controls. `report` adds the runs up.
"""
