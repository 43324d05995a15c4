# SPDX-License-Identifier: BSD-3-Clause
"""What the results come to: the failures that nobody expected, a table, and a page."""

import collections
import html

import torch


# [operators.conformance.expected] The list of known failures is exact: an operator that passes must be removed from it.
def expectations(files):
    """(operator, question) of each line `operator, question: reason`. A question without its
    dtype stands for all dtypes."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    lines = [line.split(": ", 1)[0] for line in lines if line and not line.startswith("#")]
    return {tuple(line.split(", ", 1)) for line in lines}


def known_as(result):
    """The two ways in which a list may name a result."""
    return [
        (result["operator"], name) for name in (result["question"], result["question"].split()[0])
    ]


def surprises(results, expected):
    """The results that failed and are not expected to, and what is expected and did not fail."""
    failed = [result for result in results if result["status"] != "pass"]
    met = {name for result in failed for name in known_as(result)}
    asked = {name for result in results for name in known_as(result)}
    unexpected = [
        result
        for result in failed
        if result["status"] == "crash" or not expected.intersection(known_as(result))
    ]
    return unexpected, sorted(expected & asked - met)


# [operators.conformance.table] The table has a line for each question, and one for each unexpected result.
def print_table(results, unexpected, passing):
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        compared = result["status"] != "pass" or result.get("samples", 0)
        counts[result["question"]][result["status"] if compared else "no inputs"] += 1
    columns = ("pass", "fail", "crash", "no inputs")
    print(f"{'question':<24}" + "".join(f"{column:>10}" for column in columns))
    for question, count in counts.items():
        print(f"{question:<24}" + "".join(f"{count[column]:10}" for column in columns))
    for result in sorted(unexpected, key=lambda result: result["operator"]):
        reason = result["message"].splitlines()[0][:120]
        print(f"{result['status']}: {result['operator']}, {result['question']}: {reason}")
    for operator, question in passing:
        print(f"passes now: {operator}, {question}; take it off the list of known failures.")


# [operators.conformance.page] The page is one file that loads nothing else.
PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem }}
input {{ font: inherit; width: min(30rem, 100%); padding: .3rem }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; margin-top: 1rem }}
th, td {{ text-align: left; padding: .15rem .8rem; border-bottom: 1px solid #8884 }}
th button {{ font: inherit; font-weight: bold; border: 0; background: none; padding: 0 }}
.fail, .crash {{ color: #c33; font-weight: bold }}
</style>
<h1>{title}</h1>
<p>{summary}</p>
<label>Show rows with these words: <input type="search" placeholder="fail float16"></label>
<div><table><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table></div>
<script>{script}</script>
</html>
"""

# [operators.conformance.page.script] A click on a heading sorts the rows, and words in the field filter them.
SCRIPT = """
const body = document.querySelector("tbody"), rows = [...body.rows];
document.querySelector("input").oninput = event => {
  const words = event.target.value.toLowerCase().split(/\\s+/);
  for (const row of rows)
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
};
document.querySelectorAll("th button").forEach((button, column) => {
  let up = false;
  button.onclick = () => {
    up = !up;
    const text = row => row.cells[column].textContent;
    rows.sort((a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", {numeric: true}));
    body.append(...rows);
  };
});
"""

# [operators.conformance.page.rows] Names and messages are escaped, so they cannot become markup.
COLUMNS = ("operator", "question", "status", "samples", "served", "fallbacks", "message")


def cell(value):
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return html.escape(text)


def write_page(file, device, results):
    """Writes the page; `results` are those of all operators, in one list."""
    passed = sum(result["status"] == "pass" for result in results)
    rows = [
        f'<tr class="{result["status"]}">'
        + "".join(f"<td>{cell(result.get(column, ''))}</td>" for column in COLUMNS)
        for result in sorted(results, key=lambda each: (each["operator"], each["question"]))
    ]
    page = PAGE.format(
        title=f"PyTorch {torch.__version__} on {html.escape(device)}",
        summary=f"{passed} of {len(results)} comparisons with the CPU passed.",
        head="".join(f'<th scope="col"><button>{name}</button></th>' for name in COLUMNS),
        rows="\n".join(rows),
        script=SCRIPT,
    )
    file.write_text(page, encoding="utf-8")


# [-]
