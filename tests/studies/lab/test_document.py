import math

import pytest

from epsilot.studies.lab.document import (
    Claim,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    judge,
    markdown_row,
    tally,
    to_markdown,
)
from epsilot.studies.lab.fitting import NO_FIT, Fit
from epsilot.studies.lab.report import to_html

BLOCKS = [
    Paragraph("`code` and <tags> and **strength**"),
    Command("epsilot bench --quick"),
    Heading("A part & more"),
    Table(("a", "b"), (("1 | 2", "holds"), ("3", "does not hold")), "A caption."),
    Picture("one.svg", "What it shows."),
]


def test_blocks_become_markdown():
    text = to_markdown("Title", BLOCKS)
    assert text.startswith("# Title\n\n`code`")
    assert "```sh\nepsilot bench --quick\n```" in text
    assert "## A part & more" in text
    assert "A caption.\n\n| a | b |\n| --- | --- |\n| 1 \\| 2 | holds |" in text
    assert "![What it shows.](one.svg)" in text


def test_blocks_become_one_page_that_asks_for_nothing(tmp_path):
    (tmp_path / "one.svg").write_text("<svg/>")
    page = to_html("Title <1>", BLOCKS, tmp_path)
    assert "<title>Title &lt;1&gt;</title>" in page
    assert "<code>code</code> and &lt;tags&gt; and <strong>strength</strong>" in page
    assert '<li><a href="#a-part-more">A part &amp; more</a></li>' in page
    assert '<td class="yes">holds</td>' in page
    assert '<td class="no">does not hold</td>' in page
    assert "data:image/svg+xml;base64,PHN2Zy8+" in page
    assert "http:" not in page
    assert "https:" not in page


def test_a_bar_in_a_cell_ends_no_cell():
    assert markdown_row(["a|b", "c"]) == r"| a\|b | c |"


def test_the_tally_counts_what_was_tested():
    made = [Claim("x", "here", "1", word) for word in ("holds", "does not hold", "not measured")]
    assert tally(made) == "1 of 2 tested claims hold. These do not: x here."
    assert tally(made[:1]) == "1 of 1 tested claims hold."


@pytest.mark.parametrize(
    ("fit", "expected"),
    [
        (Fit(2.1, 2.0, 2.2, 0.0), "holds"),
        (Fit(2.3, 1.9, 2.7, 0.0), "undecided"),
        (Fit(2.3, 2.1, 2.5, 0.0), "does not hold"),
        (Fit(2.3, math.nan, math.nan, 0.0), "does not hold"),
        (NO_FIT, "not measured"),
    ],
)
def test_a_wide_interval_decides_nothing(fit, expected):
    assert judge(fit, 2.0, 0.15) == expected
