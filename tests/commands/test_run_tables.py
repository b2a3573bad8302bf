"""From a file of a table and a model to a report, on the command line: every row of the table of what is supported."""

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

pandas = pytest.importorskip("pandas")


def diabetes():
    return load_diabetes(as_frame=True, scaled=False).frame


def wine():
    return load_wine(as_frame=True).frame


def shop():
    """Every kind of column, and missing values."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(18, 80, 240),
            "income": np.exp(rng.normal(10, 0.6, 240)),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], 240),
            "member": rng.random(240) < 0.4,
        }
    )
    frame["buys"] = np.where(frame.age / 80 + (frame.city == "Ulm") * 0.5 + frame.member * 0.3 > 0.8, "yes", "no")
    frame.loc[::20, "income"] = np.nan
    return frame


def parts(frame, target="target"):
    return frame.drop(columns=target), frame[target]


@pytest.fixture
def invoke(call):
    """Runs a command that succeeds: what it prints."""

    def run(*words) -> str:
        code, said, complaint = call(*map(str, words))
        assert code == 0, complaint
        return said

    return run


@pytest.fixture
def error(call):
    """Runs a command that is refused: the one line that says why."""

    def run(*words) -> str:
        code, _, complaint = call(*map(str, words))
        assert code == 2
        assert complaint.count("\n") <= 1, complaint
        return complaint

    return run


@pytest.fixture
def reported(tmp_path, invoke):
    """The journey of a user, and what the run says in figures."""

    def go(model, table, *options, whole=True) -> dict:
        spec, run, page = (tmp_path / name for name in ("s.toml", "s.db", "r.html"))
        said = invoke("init", model, table, "-o", spec, *options)
        text = spec.read_text().replace("[scan]", "[scan]\nbudget = 600")
        spec.write_text(text)
        if not whole:
            invoke("run", spec)
            return json.loads(invoke("show", run, "--json"))
        invoke("check", spec)
        invoke("run", spec)
        invoke("query", run, "noise >= 3")
        invoke("show", run)
        invoke("report", run, "-o", page)
        return {"said": said, "page": page.read_text(), "spec": text, **json.loads(invoke("show", run, "--json"))}

    return go


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".parquet", marks=pytest.mark.slow)])
def test_a_pipeline_of_mixed_columns(tmp_path, reported, suffix):
    io = pytest.importorskip("skops.io")
    frame = shop()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore")
    chosen = make_column_transformer((numbers, ["age", "income"]), (words, ["city", "member"]))
    io.dump(make_pipeline(chosen, LogisticRegression()).fit(*parts(frame, "buys")), tmp_path / "m.skops")
    if suffix == ".csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "t.parquet")
    trusted = [word for one in io.get_untrusted_types(file=tmp_path / "m.skops") for word in ("--trusted", one)]
    found = reported(tmp_path / "m.skops", tmp_path / f"t{suffix}", *trusted)
    assert "Target: buys, the only column that the model does not take." in found["said"]
    assert set(found["axes"]) == {"noise", "missing", "swap"}
    assert found["clean"]["estimate"] > 0.85
    assert set(found["by_class"]) == {"no", "yes"}
    assert "Bonn" in found["page"]  # in a row that fails, with its columns


def test_a_regression_with_skops(tmp_path, reported, invoke):
    io = pytest.importorskip("skops.io")
    frame = diabetes()
    io.dump(make_pipeline(StandardScaler(), Ridge()).fit(*parts(frame)), tmp_path / "m.skops")
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = reported(tmp_path / "m.skops", tmp_path / "t.csv")
    assert "half of the spread of the true values" in found["said"]
    assert 'oracle = { use = "tolerance", eps = ' in found["spec"]
    assert found["by_class"] == {}
    assert found["distances"]["clean"]["mean_absolute_error"] == pytest.approx(43.3, abs=1)
    assert "mean absolute error" in found["page"]
    asked = json.loads(invoke("query", tmp_path / "s.db", "noise >= 3", "--json"))
    assert asked["distance"]["mean_absolute_error"] > found["distances"]["clean"]["mean_absolute_error"]


@pytest.mark.parametrize(("make", "classes"), [(diabetes, None), pytest.param(wine, 3, marks=pytest.mark.slow)])
def test_xgboost(tmp_path, reported, make, classes):
    xgboost = pytest.importorskip("xgboost")
    frame = make()
    kind = xgboost.XGBRegressor if classes is None else xgboost.XGBClassifier
    kind(n_estimators=10, n_jobs=1).fit(*parts(frame)).get_booster().save_model(tmp_path / "m.json")
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = reported(tmp_path / "m.json", tmp_path / "t.csv", whole=False)
    assert len(found["by_class"]) == (classes or 0)
    assert ("distances" in found) == (classes is None)
    assert found["clean"]["estimate"] > 0.7


@pytest.mark.parametrize(("make", "classes"), [pytest.param(diabetes, None, marks=pytest.mark.slow), (wine, 3)])
def test_lightgbm(tmp_path, reported, make, classes):
    lightgbm = pytest.importorskip("lightgbm")
    frame = make()
    kind = lightgbm.LGBMRegressor if classes is None else lightgbm.LGBMClassifier
    fitted = kind(n_estimators=30, n_jobs=1, verbose=-1).fit(*parts(frame))
    fitted.booster_.save_model(tmp_path / "m.txt")
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = reported(tmp_path / "m.txt", tmp_path / "t.csv", whole=False)
    assert len(found["by_class"]) == (classes or 0)
    assert found["clean"]["estimate"] > 0.7


def test_an_object_of_ones_own(tmp_path, reported):
    wine().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "own_table_model.py").write_text(
        "class Own:\n    def predict(self, rows):\n        return (rows[:, 0] < 12.9) * 1\n\n\nmodel = Own()\n"
    )
    found = reported("own_table_model:model", tmp_path / "t.csv", whole=False)
    assert len(found["by_class"]) == 3


def test_bad_inputs_are_one_line(tmp_path, invoke, error):
    io = pytest.importorskip("skops.io")
    frame = diabetes()
    fitted = make_pipeline(StandardScaler(), Ridge()).fit(*parts(frame))
    io.dump(fitted, tmp_path / "m.skops")
    frame.to_csv(tmp_path / "t.csv", index=False)
    spec = tmp_path / "s.toml"
    invoke("init", tmp_path / "m.skops", tmp_path / "t.csv", "-o", spec)
    text = spec.read_text()
    for old, new, message in [
        ('target = "target"', 'target = "price"', "target: t.csv has no column 'price'"),
        ('noise = "tabular.noise"', 'noise = { use = "tabular.noise", columns = ["bmj"] }', "no column 'bmj'"),
        ("noise = ", 'missing = "tabular.missing"\nnoise = ', "Pipeline takes no missing values (NaN)"),
        (
            'target = "target"',
            'target = ""\nfeatures = ["age", "bmi"]',
            "takes columns that the data do not have: 'sex'",
        ),
    ]:
        assert old in text
        spec.write_text(text.replace(old, new))
        assert message in error("check", spec)
    frame["target"] = np.where(frame.target > 140, "high", "low")
    frame.to_csv(tmp_path / "words.csv", index=False)
    said = error("init", tmp_path / "m.skops", tmp_path / "words.csv", "-o", tmp_path / "w.toml")
    assert "the target holds words (high, low, …)" in said
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04x")
    assert "is a pickle" in error("init", tmp_path / "m.pkl", tmp_path / "t.csv", "-o", tmp_path / "p.toml")
    assert "--target: is for data of the kind table" in error(
        "init", tmp_path / "m.skops", _texts(tmp_path), "-o", tmp_path / "q.toml", "--target", "label"
    )


def _texts(folder):
    path = folder / "texts.csv"
    path.write_text("text,label\nthis is a text,0\nand this another,1\n")
    return path
