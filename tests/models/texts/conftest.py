"""A tiny tokenizer and tiny random networks, made on the spot."""

from __future__ import annotations

import json

import pytest

WORDS = [
    *"abc",
    "what",
    "is",
    "the",
    "best",
    "way",
    "to",
    "learn",
    "language",
    "why",
    "how",
    "can",
    "i",
    "do",
    "cat",
    "dog",
]


def tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "?", *(f"##{letter}" for letter in "aest")]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


def write_tokenizer(folder):
    tokenizer().save(str(folder / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 32, "model_input_names": inputs}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | names))


def write_network(folder, kind="BertModel", seed=0, **options):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=tokenizer().get_vocab_size(), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, **options,
    )  # fmt: skip
    module = getattr(transformers, kind)(config)
    with torch.no_grad():
        for parameter in module.parameters():  # the usual start is so small that every text looks the same
            parameter += 0.2 * torch.randn_like(parameter)
    module.save_pretrained(folder)
    return module.eval()


@pytest.fixture
def classifier_folder(tmp_path):
    folder = tmp_path / "classifier"
    folder.mkdir()
    write_network(folder, "BertForSequenceClassification", num_labels=3)
    write_tokenizer(folder)
    return folder


@pytest.fixture
def encoder_folder(tmp_path):
    folder = tmp_path / "encoder"
    (folder / "1_Pooling").mkdir(parents=True)
    write_network(folder)
    write_tokenizer(folder)
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    )
    return folder


@pytest.fixture
def tokenizer_file(tmp_path):
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


@pytest.fixture
def write():
    """Writes networks into folders."""
    return write_network
