"""A chat model that a run serves itself: by vLLM, by transformers, or by a command of the user's."""

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, Strict, model_validator

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import NO_FILE, GivenName, path_of, read_json_object, why_no_file
from synthbench.config.problems import COMMIT_PATTERN
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.llm import server_programs as programs
from synthbench.llm.endpoint import (
    AnswerOptions,
    AnswerRule,
    ChatModel,
    CommonPacing,
    Endpoint,
    Pacing,
    Served,
)
from synthbench.models import reference

PROGRAMS = (programs.VLLM, programs.TRANSFORMERS)
_COMMAND = "command"
_PLACES = (programs.PORT, programs.MODEL)
_IN_COMMANDS = linear_pattern(r"[\s{]")
_PLACE = linear_pattern(r"\{\w*\}")
_TEMPLATE_FILE = "chat_template.jinja"
_TOKENIZER_FILE = "tokenizer_config.json"


def name_of(model: str) -> str:
    """Return what to call a model: a file or folder by its name alone, wherever it lies."""
    path = path_of(model)
    return path.resolve().name if path.exists() else model


_Parts = Annotated[tuple[str, ...], Strict(False)]
"""A list in the file: it is no longer JSON when this union is validated."""


def _command(given: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Return the parts of a command, or the name of a program that we know."""
    if given in PROGRAMS:
        return given
    if isinstance(given, str):
        if not _IN_COMMANDS.search(given):
            known = " or ".join(PROGRAMS)
            near = did_you_mean(given, PROGRAMS)
            raise ValueError(f"must be {known}, or a command with {programs.PORT}, is '{given}'{near}")
        try:
            given = tuple(shlex.split(given))
        except ValueError as error:
            raise ValueError(f"is no command: {error}; write it as a list of its parts") from None
    if not given or not given[0]:
        raise ValueError("a command needs a program")
    for place in _PLACE.findall(" ".join(given)):
        if place not in _PLACES:
            raise ValueError(f"has no place {place}; there are {' and '.join(_PLACES)}")
    if not any(programs.PORT in part for part in given):
        raise ValueError(f"has no {programs.PORT}, where the free port goes on which it has to listen")
    return given


class ServedModel(BaseModel):
    """What is served, and by which program."""

    serve: Annotated[str | _Parts, AfterValidator(_command)] = Field(
        description="`vllm`, `transformers`, or a command, as text or a list, such as `llama-server -m"
        " {model} --port {port}`; it has to listen on that port of 127.0.0.1"
    )
    model: GivenName = Field(
        min_length=1,
        description="hub id, local folder (relative to the experiment file) or `package:module/path` of a"
        " model with a chat template; with a command also a file, or any name that the server knows",
    )
    revision: str | None = Field(
        None, pattern=COMMIT_PATTERN, description="full commit hash of a hub model; null: its main branch"
    )
    start_timeout_s: float = Field(
        600.0, gt=0, description="seconds until the server must be healthy, downloads and loading included"
    )
    sends_sample: bool = Field(
        True, description="send each request's sample index as `seed`; false where that is refused"
    )


class ServedLLM(CommonPacing, AnswerRule, AnswerOptions, ServedModel):
    """A local chat model behind OpenAI's API, whose server a run starts when a stage first asks it."""

    timeout: float = Field(600.0, gt=0, description="seconds until a request without an answer is given up")

    @model_validator(mode="after")
    def _fits_its_program(self) -> Self:
        if self.command and self.revision is not None:
            raise ValueError("revision: a command does not get it; write it into the command")
        for option in programs.IGNORED.get(self.endpoint, ()):
            if getattr(self, option) is not None:
                raise ValueError(f"{option}: {self.endpoint} takes no notice of it; leave it out")
        if self.budget_usd is not None and self.price is None:
            raise ValueError(
                "budget_usd: a model on this machine has no price; give price: {input: ..., output: ...,"
                " date: ...}, in US dollars for a million tokens, or leave the budget out"
            )
        return self

    @property
    def command(self) -> tuple[str, ...]:
        """The user's command, () for a program that we know."""
        return self.serve if isinstance(self.serve, tuple) else ()

    @property
    def endpoint(self) -> str:
        """What it is called: by its program."""
        return Path(self.command[0]).name if self.command else str(self.serve)

    def identity(self) -> Mapping[str, Any]:
        """Return what the identity of a stage holds beside the model's commit or content hash: no port."""
        command = {"command": self._portable_command} if self.command else {}
        endpoint = _COMMAND if self.command else self.endpoint
        return {"endpoint": endpoint, "model": self.model, **command, **self.options(), **self.rule()}

    @property
    def _portable_command(self) -> list[str]:
        """The command without the folder of its program."""
        return [self.endpoint, *self.command[1:]]

    def revisions(self) -> Mapping[str, str]:
        """Return {model: commit or content hash}; of a name that only a command knows, {}.

        Raises UserError if the model can't be found.
        """
        if self.command:
            return reference.content(self.model)
        return reference.fingerprint(self.model, self.revision)

    def address(self) -> ChatModel:
        """Return what it is called. It has no address before a run starts its server."""
        return ChatModel(self.endpoint, "", name_of(self.model))

    def at(self, address: ChatModel) -> Endpoint:
        """Return it as an endpoint, whose name tells its answers from those of other weights or commands.

        Raises UserError if the model can't be found.
        """
        revision = self.revisions().get(self.model)
        named = {} if revision is None else {"revision": revision}
        if self.command:
            digest = hashlib.sha256("\0".join(self._portable_command).encode())
            named = {"command": digest.hexdigest()[:12], **named}
        common = self.model_dump(include=set(CommonPacing.model_fields))
        name = f"{self.endpoint} ({', '.join(f'{key}={value}' for key, value in named.items())})"
        return Endpoint(
            name,
            "",
            address.model,
            pacing=Pacing.model_validate({**common, "concurrency": self._requests_at_once}),
            sends_sample=self.sends_sample,
            served=self._served(address.model),
            door=address.door,
            options=self.options(),
            takes_cut_off=self.takes_cut_off,
        )

    @property
    def _requests_at_once(self) -> int:
        """As set; by default one at a time for a program that answers so, since the order then is ours."""
        is_set = "concurrency" in self.model_fields_set
        return 1 if self.serve == programs.TRANSFORMERS and not is_set else self.concurrency

    def _served(self, name: str) -> Served:
        if self.command:
            path = path_of(self.model)
            model = str(path.resolve()) if path.exists() else str(self.model)
            return programs.of_user(self.command, model, self.start_timeout_s)
        folder = reference.local(self.model)
        model = str(self.model) if folder is None else str(folder.resolve())
        commit = None if folder is not None else self.revisions()[self.model]
        if self.serve == programs.VLLM:
            return programs.vllm(model, name, commit, self.start_timeout_s)
        return programs.transformers(model, commit, self.start_timeout_s)

    def check_folder(self) -> None:
        """Raise UserError if a local or packaged model is missing or lacks what a chat model needs.

        A model of the hub is not looked at, nor what a command makes of the model.
        """
        if self.command:
            if self.model.startswith((".", "/", "~")) and why_no_file(path_of(self.model)) == NO_FILE:
                raise UserError(f"{self.model}: no such file or folder: {path_of(self.model).absolute()}")
            return
        NamedLanguageModel(model=self.model).check_folder()
        folder = reference.local(self.model)
        if folder is None:
            return
        tokenizer = folder / _TOKENIZER_FILE
        has_template = tokenizer.is_file() and read_json_object(tokenizer).get("chat_template")
        if not has_template and not (folder / _TEMPLATE_FILE).is_file():
            raise UserError(
                f"{self.model}: no chat template in {folder}: looked for {_TEMPLATE_FILE}, and for"
                f" chat_template in {_TOKENIZER_FILE}; a model that follows instructions has one"
            )
        if self.serve == programs.TRANSFORMERS and "@" in str(folder.resolve()):
            raise UserError(
                f"{self.model}: transformers serve takes what follows an @ for a revision; move the"
                f" folder, which is {folder.resolve()}"
            )
