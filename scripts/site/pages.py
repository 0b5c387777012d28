"""Hooks of mkdocs: pages outside docs/ join the site; links to other files lead to the repository."""

import logging
import os
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages of the site outside docs/.
OUTSIDE = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "agents/README.md",
    "agents/examples/README.md",
    "models/*.md",
    "models/adapters/README.md",
    "python/README.md",
    "train/lora/README.md",
]
# A fenced block, a code span, or the address of a link or picture: only the last is rewritten.
LINK = re.compile(
    r"^(```).*?^\1|(`+)(?!`).*?(?<!`)\2(?!`)|(?<=\]\()([^)\s]+)(?=[)\s])", re.MULTILINE | re.DOTALL
)
# A list without a blank line before it: a code host shows it as a list, mkdocs as text.
MISSED_LIST = re.compile(r"<p>(?:(?!</p>).)*?\n((?:[-*]|\d+\.) [^\n]*)", re.DOTALL)
log = logging.getLogger("mkdocs.hooks.pages")


def on_files(files, config):
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            address = "index.md" if name == "README.md" else name
            files.append(File.generated(config, address, abs_src_path=str(path)))
    return files


def inside(file):
    return ROOT in pathlib.Path(file.abs_src_path).resolve().parents


def place(file):
    """The path of a file of the site in the repository."""
    return pathlib.Path(file.abs_src_path).resolve().relative_to(ROOT).as_posix()


def on_page_markdown(markdown, page, config, files):
    # Files of the theme lie elsewhere.
    own = [file for file in files if file.abs_src_path and inside(file)]
    at = {place(file): file.src_uri for file in own}
    here = pathlib.PurePosixPath(place(page.file)).parent
    site = pathlib.PurePosixPath(page.file.src_uri).parent

    def target(link):
        address, hash_sign, anchor = link.partition("#")
        if not address or re.match(r"[a-z]+:", address):
            return link
        path = os.path.normpath(here / address)
        if path in at:
            return os.path.relpath(at[path], site) + hash_sign + anchor
        if not (ROOT / path).exists():
            log.warning(f"'{place(page.file)}': '{link}' leads to nothing in the repository")
            return link
        if not config.repo_url:
            # Without an address of the repository, a link leads to the checkout.
            return (ROOT / path).as_uri()
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        commit = os.environ.get("REPOSITORY_COMMIT", "main")
        return f"{config.repo_url.rstrip('/')}/{kind}/{commit}/{path}{hash_sign}{anchor}"

    return LINK.sub(lambda found: target(found[3]) if found[3] else found[0], markdown)


def on_page_content(html, page, config, files):
    for found in MISSED_LIST.finditer(html):
        log.warning(f"'{place(page.file)}': a blank line is missing before the list '{found[1]}'")
