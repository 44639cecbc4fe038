# SPDX-License-Identifier: Apache-2.0
"""Diagrams of characters as SVG: the text on a page is the one source of both.

A run of - or =, and | beside no letter, are lines; + ' and . join lines; > < v ^ at
the end of a line are arrowheads. All else is text, each run of it as wide as its
characters, whatever the font.
"""
import html
import re
import sys

WIDTH, HEIGHT, BASE = 8, 18, 13  # of a character; its base line
DIAGRAM = re.compile(r"-+>|<-+|\+--")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*(?=\s|$)")
JOINTS = "+'."
DASHES = re.compile(r"[-=]{2,}|(?<=[+<|'])[-=]|[-=](?=[+>|'])")
LEFT, RIGHT, UP, DOWN = (0, -1), (0, 1), (-1, 0), (1, 0)
HEADS = {">": (LEFT, "m-6-4 6 4-6 4z"), "<": (RIGHT, "m6-4-6 4 6 4z"),
         "v": (UP, "m-4-6 4 6 4-6z"), "^": (DOWN, "m-4 6 4-6 4 6z")}


def is_diagram(text):
    return bool(DIAGRAM.search(text)) and ">>>" not in text


class Grid:
    """The characters of a diagram, and of which of them lines are made"""

    def __init__(self, text):
        self.rows = text.rstrip("\n").split("\n")
        self.width = max(map(len, self.rows))
        self.lines = {}  # (row, column): the directions in which a line leaves
        for row, line in enumerate(self.rows):
            self.find_horizontal(row, line)
        for row, line in enumerate(self.rows):
            for column, character in enumerate(line):
                if character == "|" and not self.is_word(row, column):
                    self.lines[row, column] = {UP, DOWN}
        for row, line in enumerate(self.rows):
            for column, character in enumerate(line):
                self.find_joint(row, column, character)

    def at(self, row, column):
        if 0 <= row < len(self.rows) and 0 <= column < len(self.rows[row]):
            return self.rows[row][column]
        return " "

    def is_word(self, row, column):
        return any(self.at(row, side).isalnum() for side in (column - 1, column + 1))

    def is_alone(self, row, column):
        return all(self.at(row, column + side) == " " for side in (-2, -1, 1, 2))

    def find_horizontal(self, row, line):
        options = {place for option in OPTION.finditer(line)
                   for place in range(*option.span())}
        for run in DASHES.finditer(line):
            if run.start() not in options:
                for column in range(*run.span()):
                    self.lines[row, column] = {LEFT, RIGHT}

    def leaves(self, row, column, to):
        """Whether the neighbour in this direction has a line that comes here"""
        place = (row + to[0], column + to[1])
        if self.at(*place) in JOINTS:
            return True
        return (-to[0], -to[1]) in self.lines.get(place, ())

    def find_joint(self, row, column, character):
        if character in JOINTS:
            sides = {to for to in (LEFT, RIGHT, UP, DOWN)
                     if (-to[0], -to[1]) in self.lines.get(
                         (row + to[0], column + to[1]), ())}
            if character == "+":
                sides |= {to for to in (UP, DOWN)
                          if self.at(row + to[0], column) == "+"}
            elif sides & {LEFT, RIGHT}:
                sides.add(UP if character == "'" else DOWN)
            if sides & {LEFT, RIGHT} or character == "+" and (
                    sides and self.at(row, column - 1) in ">+ "):
                self.lines[row, column] = sides
        elif character in HEADS:
            to, _ = HEADS[character]
            level = to in (LEFT, RIGHT)
            if self.leaves(row, column, to) and (
                    level or not self.is_word(row, column)):
                self.lines[row, column] = {to, "head"}
            elif not level and self.is_alone(row, column):
                self.lines[row, column] = {"head"}

    def texts(self):
        """Row, column and text of what is no line"""
        for row, line in enumerate(self.rows):
            kept = "".join(" " if (row, column) in self.lines else character
                           for column, character in enumerate(line))
            for run in re.finditer(r"\S+(?: \S+)*", kept):
                yield row, run.start(), run.group(0)


def middle(row, column):
    return column * WIDTH + WIDTH // 2, row * HEIGHT + HEIGHT // 2


def drawn(grid):
    paths, heads = [], []
    for (row, column), sides in sorted(grid.lines.items()):
        x, y = middle(row, column)
        for to in sorted(sides - {"head"}):
            paths.append(f"M{x} {y}" + (f"h{to[1] * WIDTH // 2}" if to[1]
                                        else f"v{to[0] * HEIGHT // 2}"))
        if "head" in sides:
            heads.append(f"M{x} {y}" + HEADS[grid.at(row, column)][1])
    return "".join(paths), "".join(heads)


def svg(text, title):
    """The diagram in colours of the page around it"""
    grid = Grid(text)
    paths, heads = drawn(grid)
    size = f"{grid.width * WIDTH} {len(grid.rows) * HEIGHT}"
    words = "".join(
        f'<text x="{column * WIDTH}" y="{row * HEIGHT + BASE}" '
        f'textLength="{len(word) * WIDTH}" lengthAdjust="spacingAndGlyphs">'
        f"{html.escape(word)}</text>" for row, column, word in grid.texts())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{grid.width * WIDTH}" role="img" '
            f'aria-label="{html.escape(title)}" font-family="monospace" '
            f'font-size="13" fill="currentColor"><path d="{paths}" fill="none" '
            f'stroke="currentColor"/><path d="{heads}"/>{words}</svg>')


def self_test():
    grid = Grid("a-b --takes-->  c --an-option\n"
                "  |            ^ v|w\n"
                "  +-- x --+    '-+\n"
                "  +-> y ->+     the end.\n")
    texts = [word for _, _, word in grid.texts()]
    if texts != ["a-b", "takes", "c --an-option", "v|w", "x", "y",
                 "the end."]:
        return f"texts: {texts}"
    if grid.lines[2, 2] != {UP, RIGHT, DOWN} or grid.lines[3, 10] != {UP} or grid.lines[1, 15] != {DOWN, "head"}:
        return f"lines: {grid.lines}"
    if grid.lines[0, 13] != {LEFT, "head"} or not is_diagram("a -> b"):
        return f"lines: {grid.lines}"
    print("lines, joints, arrowheads and texts are told apart")
    return 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"]
             else print(svg(sys.stdin.read(), "diagram")))
