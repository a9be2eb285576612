"""Tables of reproduced papers: claims, and the points of figures.

docs/papers.md shows them.
"""

from __future__ import annotations

from hindflight.toolkit.schema.model import Column, Table

VERDICTS = ("reproduced", "partly", "not_reproduced", "not_testable", "too_few_runs")

CLAIMS = Table(
    "claims",
    "one claim of a paper, judged under one reading of its text",
    (
        Column("claim_id", "text", "", "Identifier: number of the paper and of the claim"),
        Column("paper", "text", "", "Paper, as `hindflight reproduce` calls it"),
        Column("figure", "text", "", "Figure, table or section of the paper"),
        Column("scenario", "text", "", "Configuration that it is about"),
        Column("metric", "text", "", "Quantity"),
        Column(
            "kind",
            "enum",
            "",
            "What is claimed: a number (value, ratio), bounds (range), an ordering, a shape of a curve, or its knee",
            values=("value", "ratio", "range", "ordering", "shape", "knee"),
        ),
        Column("expected", "text", "", "What the paper has"),
        Column("tolerance", "text", "", "Accepted deviation"),
        Column("origin", "enum", "", "stated by the paper, or inferred from it", values=("stated", "inferred")),
        Column(
            "by",
            "enum",
            "",
            "How it is answered: runs of the engine, a call into a part of it (unit), arithmetic on the scenario, or not",
            values=("engine", "unit", "arithmetic", "not testable"),
        ),
        Column("text", "text", "", "The claim as a sentence"),
        Column(
            "reading",
            "text",
            "",
            "Reading of the paper under which the runs were made; `default` is the one that counts",
        ),
        Column("value", "f64", "", "Measured value of a claim about one number, in `unit`", nullable=True),
        Column("low", "f64", "", "Lower end of its 95 % interval", nullable=True),
        Column("high", "f64", "", "Upper end of its 95 % interval", nullable=True),
        Column("unit", "text", "", "Unit of the three; empty for a ratio"),
        Column(
            "parts", "text", "", "All numbers of a claim about several, with their intervals and whether each holds"
        ),
        Column("runs", "u32", "", "Runs per configuration; 0 where none was needed"),
        Column(
            "verdict",
            "enum",
            "",
            "Outcome; too_few_runs: the intervals do not decide",
            values=VERDICTS,
        ),
        Column("reason", "text", "", "Why it is not reproduced, where it is not"),
    ),
)

POINTS = Table(
    "points",
    "one point of a figure of a reproduced paper, or of an experiment on one of its claims",
    (
        Column("paper", "text", "", "Paper, as `hindflight reproduce` calls it"),
        Column("figure", "text", "", "Key of the figure; of an experiment the claim"),
        Column("series", "text", "", "Curve, or group of bars"),
        Column("label", "text", "", "Category on the horizontal axis; empty where `x` is a number"),
        Column("x", "f64", "", "Horizontal position, in the unit of the axis", nullable=True),
        Column("y", "f64", "", "Vertical position, in the unit of the axis"),
        Column("low", "f64", "", "Lower end of the 95 % interval of `y`", nullable=True),
        Column("high", "f64", "", "Upper end of that interval", nullable=True),
    ),
)
