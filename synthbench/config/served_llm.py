"""A chat model that the run serves: with vLLM, with transformers, or with the user's command."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import replace
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
    """Return a model's display name: for a file or folder, its name without the path."""
    path = path_of(model)
    return path.resolve().name if path.exists() else model


_Parts = Annotated[tuple[str, ...], Strict(False)]
"""A command as a list; not strict, since the strict mode takes no list from Python for a tuple."""


def _command(given: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Return a known program's name unchanged; split a command into its parts."""
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
    """A served model and its server program."""

    serve: Annotated[str | _Parts, AfterValidator(_command)] = Field(
        description="`vllm`, `transformers`, or a command as text or list, such as `llama-server -m {model}"
        " --port {port}`; its server must listen on 127.0.0.1 at {port}"
    )
    model: GivenName = Field(
        min_length=1,
        description="hub id, local folder (relative to the experiment file) or `package:module/path` of a"
        " model with a chat template. If a command of yours starts the server: also a file, or any name"
        " that the server accepts",
    )
    revision: str | None = Field(
        None, pattern=COMMIT_PATTERN, description="full commit hash of a hub model; null: the main branch"
    )
    start_timeout_s: float = Field(
        600.0,
        gt=0,
        description="seconds that the server may take to start, including downloads and loading",
    )
    sends_sample: bool = Field(
        True, description="send each request's sample index as `seed`; false for servers that reject it"
    )
    replicas: int = Field(
        1,
        ge=1,
        le=1000,
        description="number of servers that share the requests on a Ray cluster; always 1 elsewhere",
    )
    gpus: float | None = Field(
        None, ge=0, le=64, description="GPUs per server on a Ray cluster. Default: 1 if any node has a GPU"
    )


class ServedLLM(CommonPacing, AnswerRule, AnswerOptions, ServedModel):
    """A local chat model with OpenAI's API; the run starts its server at the first request."""

    timeout: float = Field(600.0, gt=0, description="time limit of a request in seconds")

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
                " date: ...}, in US dollars for a million tokens, or budget_tokens instead"
            )
        return self

    @property
    def command(self) -> tuple[str, ...]:
        """The parts of the user's command; () if `serve` is `vllm` or `transformers`."""
        return self.serve if isinstance(self.serve, tuple) else ()

    @property
    def endpoint(self) -> str:
        """The server program's name, such as `vllm` or `llama-server`."""
        return Path(self.command[0]).name if self.command else str(self.serve)

    def identity(self) -> Mapping[str, Any]:
        """Return the LLM's settings in a stage's identity.

        The model's commit or content hash is not among the settings; `revisions` returns it.
        """
        command = {"command": self._portable_command} if self.command else {}
        endpoint = _COMMAND if self.command else self.endpoint
        return {"endpoint": endpoint, "model": self.model, **command, **self.options(), **self.rule()}

    @property
    def _portable_command(self) -> list[str]:
        """The command with the program's name instead of its path."""
        return [self.endpoint, *self.command[1:]]

    def revisions(self) -> Mapping[str, str]:
        """Return {model: commit or content hash}, {} for a name that only the server can resolve.

        Raises UserError if the model can't be found.
        """
        if self.command:
            return reference.content(self.model)
        return reference.fingerprint(self.model, self.revision)

    def address(self) -> ChatModel:
        """Return the model with an empty base URL, which is unknown until a run starts the server."""
        return ChatModel(self.endpoint, "", name_of(self.model))

    def at(self, address: ChatModel) -> Endpoint:
        """Return the endpoint, whose name keeps cached answers of different models and commands apart.

        The name holds the model's commit or content hash, and the hash of a user's command.

        Raises UserError if the model can't be found.
        """
        revision = self.revisions().get(self.model)
        named = {} if revision is None else {"revision": revision}
        if self.command:
            digest = hashlib.sha256("\0".join(self._portable_command).encode())
            named = {"command": digest.hexdigest()[:12], **named}
        common = self.model_dump(include=set(CommonPacing.model_fields))
        replicas = self.replicas if address.door is not None and address.door.is_elsewhere else 1
        name = f"{self.endpoint} ({', '.join(f'{key}={value}' for key, value in named.items())})"
        return Endpoint(
            name,
            "",
            address.model,
            pacing=Pacing.model_validate({**common, "concurrency": replicas * self._requests_at_once}),
            sends_sample=self.sends_sample,
            served=replace(self._served(address.model), replicas=replicas, gpus=self.gpus),
            door=address.door,
            options=self.options(),
            takes_cut_off=self.takes_cut_off,
        )

    @property
    def _requests_at_once(self) -> int:
        """Concurrent requests per server. Default for transformers: 1, so that their order is fixed."""
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
        """Raise UserError if a local or packaged model is missing, incomplete or has no chat template.

        Skips models on the hub. For a command, only a path that starts with `.`, `/` or `~` must exist.
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
