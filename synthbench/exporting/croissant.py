"""Croissant 1.1: a data set's files, columns and provenance as JSON-LD (mlcommons.org/croissant/1.1)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.durability import file_hash

if TYPE_CHECKING:
    import pyarrow as pa

CROISSANT_FILE = "croissant.json"
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file, the name of its record set, and its columns."""

    record_set: str
    path: Path
    schema: "pa.Schema"


@dataclass(frozen=True)
class Provenance:
    """How a data set came to be: what it was derived from, and who made it how.

    `derived_from` and `made_by` are (name, version) pairs, `how` is a sentence.
    """

    derived_from: Sequence[tuple[str, str]]
    made_by: Sequence[tuple[str, str]]
    how: str
    software: str


def croissant(
    about: Mapping[str, str],
    provenance: Provenance,
    files: Sequence[DataFile],
    folder: Path,
) -> str:
    """Return the JSON of a data set, whose Parquet files in `folder` are a record set each.

    `about` has what schema.org calls name, description, license, inLanguage and version.
    """
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        **about,
        "keywords": ["synthetic", "sentence-similarity", "synthbench"],
        "isLiveDataset": False,
        "rai:hasSyntheticData": True,
        "rai:dataCollectionType": ["Synthetic data"],
        "rai:dataCollection": provenance.how,
        "rai:machineAnnotationTools": [_versioned(*each) for each in provenance.made_by],
        "prov:wasDerivedFrom": [
            {"@type": "prov:Entity", "prov:label": _versioned(*each)} for each in provenance.derived_from
        ],
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": provenance.how,
            "prov:wasAssociatedWith": [
                {"@type": "prov:SoftwareAgent", "prov:label": label}
                for label in (provenance.software, *(_versioned(*each) for each in provenance.made_by))
            ],
        },
        "distribution": [_file(file.path, folder) for file in files],
        "recordSet": [_record_set(file, folder) for file in files],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _versioned(name: str, version: str) -> str:
    return f"{name} at {version}" if version else name


def _file(file: Path, folder: Path) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": _id(file, folder),
        "name": file.name,
        "contentUrl": _id(file, folder),
        "contentSize": f"{file.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": file_hash(file),
    }


def _id(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _record_set(file: DataFile, folder: Path) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": file.record_set,
        "name": file.record_set,
        "field": [_field(file.record_set, _id(file.path, folder), column) for column in file.schema],
    }


def _field(record_set: str, file: str, column: "pa.Field[Any]") -> dict[str, Any]:
    import pyarrow as pa

    is_list = pa.types.is_list(column.type)
    kind = column.type.value_type if is_list else column.type
    of_list = {"isArray": True, "arrayShape": "-1"} if is_list else {}
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column.name}",
        "name": column.name,
        "dataType": _data_type(kind),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
        **of_list,
    }


def _data_type(kind: "pa.DataType") -> str:
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:Integer" if pa.types.is_integer(kind) else "sc:Text"
