from answers import show
import os


os.environ["YOLO_OFFLINE"] = "true"
import cv2
import numpy as np
import torch
import torchvision
from ultralytics import YOLO
from ultralytics.utils import LOGGER
from ultralytics.utils.nms import TorchNMS

LOGGER.setLevel(50)
rng = np.random.default_rng(0)
for part in ("train", "val"):
    os.makedirs(f"data/images/{part}"), os.makedirs(f"data/labels/{part}")
    for i in range(4):
        picture = np.full((64, 64, 3), 90, np.uint8)
        rows = []
        for _ in range(2):
            w, h = rng.integers(10, 25, 2)
            x, y = rng.integers(0, 64 - 25, 2)
            kind = int(rng.integers(0, 2))
            cv2.rectangle(picture, (int(x), int(y)), (int(x + w), int(y + h)), (255, 0, 0) if kind else (0, 255, 0), -1)
            rows.append(f"{kind} {(x + w / 2) / 64} {(y + h / 2) / 64} {w / 64} {h / 64}")
        cv2.imwrite(f"data/images/{part}/{i}.png", picture)
        open(f"data/labels/{part}/{i}.txt", "w").write("\n".join(rows))
open("data.yaml", "w").write(f"path: {os.getcwd()}/data\ntrain: images/train\nval: images/val\nnames: [a, b]\n")
picture = cv2.imread("data/images/val/0.png")
for name in ("yolo11n.yaml", "yolov8n.yaml", "yolov8n-seg.yaml", "yolov8n-pose.yaml", "yolov8n-cls.yaml", "yolo12n.yaml", "rtdetr-resnet50.yaml"):
    try:
        torch.manual_seed(0)
        net = YOLO(name).model.eval()
        out = net(torch.rand(1, 3, 64, 64))
        out = out[0] if isinstance(out, (tuple, list)) else out
        show(name, out[0] if isinstance(out, (tuple, list)) else out)
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:300])
torchvision.ops.nms = TorchNMS.nms  # torchvision's library has none here
torch.manual_seed(1)
model = YOLO("yolo11n.yaml")
model.train(
    data="data.yaml",
    epochs=2,
    imgsz=64,
    batch=4,
    device="cpu",
    workers=0,
    verbose=False,
    plots=False,
    seed=1,
    amp=False,
    optimizer="SGD",
    lr0=0.01,
    project=f"{os.getcwd()}/runs",
    pretrained=False,
    mosaic=1.0,
)
rows = open("runs/train/results.csv").read().splitlines()
show("training", [[float(v) for i, v in enumerate(r.split(",")) if i not in (1,)] for r in rows[1:]])
again = YOLO("runs/train/weights/last.pt")
found = again.predict(picture, imgsz=64, conf=0.0001, max_det=5, verbose=False, device="cpu")[0]
show("boxes", found.boxes.data)
show("metrics", again.val(data="data.yaml", imgsz=64, device="cpu", verbose=False, plots=False, workers=0).box.map)
file = again.export(format="torchscript", imgsz=64, device="cpu")
show("script", torch.jit.load(file)(torch.ones(1, 3, 64, 64)))
