"""Regions handed over to formal verifiers: an ONNX graph from parameters to scores, and the property as VNN-LIB."""

from testifai.verification.export import GraphAgreement, Handover, hand_over
from testifai.verification.regions import Range, Region, property_text, region_of

__all__ = ["GraphAgreement", "Handover", "Range", "Region", "hand_over", "property_text", "region_of"]
