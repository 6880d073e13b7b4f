"""What consolidation asks a person: which of two sides holds, or what is to become of one entry.

A question is about texts. As long as they stay as they are it has the same id, so that it is asked only once.
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.model import PARAGRAPHS, Learning, Value, check_choice, digest, text_id

CONTRADICTION, UNFIT, REGRESSION, PATCH, TOO_LONG = KINDS = (
    "contradiction",
    "unfit",
    "regression",
    "patch",
    "too long",
)
OLD, NEW, BOTH, NEITHER = CHOICES = ("old", "new", "both", "neither")
MAX_PASSAGE = 2_000


class OpenQuestion(Value):
    """Something that a person has to decide before an entry can be consolidated."""

    kind: str
    subject: str
    """The id of the newer learning or, if the question is about a file, the file's path."""
    older: str = ""
    """The id of the learning on the other side; empty if there is none."""
    file: str = ""
    """The path of the document on the other side, in the project."""
    passage: str = ""
    """What that document says."""
    text: str
    """The question in words."""
    state: str
    """A digest of both sides; if it changes, the question is withdrawn."""

    def check(self) -> None:
        check_choice("kind", self.kind, KINDS)

    @property
    def id(self) -> str:
        """The id of its escalation."""
        return text_id("esc", " ".join(("consolidation", self.kind, self.subject, self.older, self.file, self.state)))


class Regression(Value):
    """A learning that has helped, and would be missing in briefs of the past because of an entry of the plan."""

    id: str
    title: str
    briefs: int


def digest_sides(sides: Sequence[Learning], passage: str = "") -> str:
    """Return a digest of what some learnings, and a passage of a document, say."""
    texts = [getattr(learning, name) for learning in sides for name in ("id", "title", *PARAGRAPHS)]
    return digest("\0".join((*texts, passage[:MAX_PASSAGE])))[:16]


def ask_which_holds(newer: Learning, older: Learning, reason: str) -> OpenQuestion:
    """Return the question which of two learnings holds."""
    return OpenQuestion(
        kind=CONTRADICTION,
        subject=newer.id,
        older=older.id,
        text=f"“{newer.title}” and “{older.title}” do not seem to hold together ({reason}). Which of them holds?",
        state=digest_sides((newer, older)),
    )


def ask_about_document(newer: Learning, file: str, passage: str, reason: str) -> OpenQuestion:
    """Return the question whether a learning or a passage of a document holds, which no learning stands behind."""
    passage = passage[:MAX_PASSAGE]
    return OpenQuestion(
        kind=CONTRADICTION,
        subject=newer.id,
        file=file,
        passage=passage,
        text=f"“{newer.title}” does not seem to hold together with what {file} says ({reason}). Which of them holds?",
        state=digest_sides((newer,), passage),
    )


def ask_about_flaw(learning: Learning, flaw: str) -> OpenQuestion:
    """Return the question whether an entry that is no principle is to be kept all the same."""
    return OpenQuestion(
        kind=UNFIT,
        subject=learning.id,
        text=f"“{learning.title}” is perhaps not worth keeping ({flaw}). Keep it (new), or let it go (neither)?",
        state=digest_sides((learning,)),
    )


def ask_about_loss(learning: Learning, successor: Learning | None, regression: Regression) -> OpenQuestion:
    """Return the question whether an entry may go although briefs would miss a learning that has helped in them.

    `successor` stands for the entry's learning afterwards; None if the learning itself goes into a topic file.
    """
    many = "1 brief" if regression.briefs == 1 else f"{regression.briefs} briefs"
    is_itself = regression.id == learning.id
    if is_itself and successor:
        text = (
            f"“{learning.title}” has helped in {many}, and “{successor.title}” would not be given instead. "
            "Keep it (old), or let it go (new)?"
        )
        return OpenQuestion(
            kind=REGRESSION,
            subject=successor.id,
            older=learning.id,
            text=text,
            state=digest_sides((successor, learning)),
        )
    lost = "it would be missing" if is_itself else f"“{regression.title}” would be missing"
    text = (
        f"If “{learning.title}” is consolidated, {lost} in {many} in which it has helped. "
        "Leave it in the staging file (old), or consolidate it all the same (new)?"
    )
    return OpenQuestion(kind=REGRESSION, subject=learning.id, text=text, state=digest_sides((learning,)))


def ask_about_patch(path: str, text: str, patch: str) -> OpenQuestion:
    """Return the question whether a document that learnt did not make is to be split, as a patch shows."""
    lines = text.count("\n")
    return OpenQuestion(
        kind=PATCH,
        subject=path,
        file=path,
        passage=patch,
        text=f"{path} has {lines} lines, too many for more entries. Split it by its headings, as the patch shows "
        "(new), or leave it as it is and write them there all the same (old)?",
        state=digest_file(text),
    )


def ask_to_shorten(path: str, reason: str, last_run: str) -> OpenQuestion:
    """Return the question what to do with a staging file that is too long although nothing in it has aged.

    It is asked once after each consolidation; `last_run` names the last one.
    """
    text = f"{path} is too long, and too few of its entries have aged: {reason}. Shorten it, or raise the limit?"
    return OpenQuestion(
        kind=TOO_LONG, subject=path, file=path, text=text, state=digest(f"{path} {last_run}".strip())[:16]
    )


def digest_file(text: str) -> str:
    """Return a digest of a document, by which a change is recognised."""
    return digest(text)[:16]
