"""Prints what CloudFormation makes of the SAM template, as JSON. Asks nobody; needs aws-sam-cli.

usage: transform.py TEMPLATE [FUNCTION=S3_URI_OF_ITS_ZIP …]
"""

import json
import os
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """The template names none, and one that is not there must fail."""

    def load(self):
        return {}


def main(path, *zips):
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    zips = dict(pair.split("=", 1) for pair in zips)
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = zips.get(name, f"s3://code/{name}.zip")
    json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout, indent=1)


main(*sys.argv[1:])
