"""The table: a line on the screen, a summary, a page."""

GROUPS = {"packages": "Packages", "examples": "pytorch/examples", "zoo": "albanD/subclass_zoo"}
SIGNS = {"equal": "equal", "imports": "imports", "differs": "**differs**", "fails": "**fails**", "unfit": "not here"}
BEGIN, END = "<!-- table: tools/run_programs --markdown -->", "<!-- end of table -->"


def line(row):
    ratio = f"{row['seconds']:6.1f} s" if "seconds" in row else " " * 8
    theirs = f" (PyTorch {row['torch_seconds']:.1f} s)" if "torch_seconds" in row else ""
    return f"{row['id']:36} {row['verdict']:8} {ratio}{theirs}  {row.get('note', '')}"


def summary(rows):
    lines = []
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        good = sum(row["verdict"] in ("equal", "imports") for row in mine)
        unfit = sum(row["verdict"] == "unfit" for row in mine)
        lines.append(f"{group}: {good} of {len(mine) - unfit}" + (f"; {unfit} fail with PyTorch 2.13 as well" if unfit else ""))
    return "\n".join(lines)


def _cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(").replace("\n", " ")


def page(text, rows):
    """The page with its table replaced."""
    parts = [BEGIN]
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        parts += ["", f"## {GROUPS.get(group, group)}", "", summary(mine).partition(": ")[2] + ".", "", "| | what runs | answer | note |", "|---|---|---|---|"]
        for row in mine:
            parts.append(f"| {row['name']} | {_cell(row['what'])} | {SIGNS[row['verdict']]} | {_cell(row.get('note') or '')} |")
    parts += ["", END]
    head, _, rest = text.partition(BEGIN)
    return head + "\n".join(parts) + (rest.partition(END)[2] or "\n")
