// Draws the charts of a report in the colours of the page; charts of one group zoom together.
// Needs `vegaEmbed` (the script above) and the JSON in #charts, and loads nothing. A chart is {spec, title, group, columns}.
(function () {
  "use strict";
  const store = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // chart number -> Vega view
  const domains = new Map(); // group -> [from, to] of the zoomed time axis, and [low, high] of sequence numbers
  const stale = new Set(); // charts out of view whose zoom is not drawn yet
  const inView = new Set();
  const containers = store.charts.map((_, number) => document.getElementById(`chart-${number}`));
  const tools = store.charts.map((_, number) => document.querySelector(`[data-tools="${number}"]`));
  let generation = 0;

  const collectDatasets = (part, found = {}) => {
    if (Array.isArray(part)) part.forEach((item) => collectDatasets(item, found));
    else if (part && typeof part === "object") {
      if (part.data && part.data.name in store.datasets) found[part.data.name] = store.datasets[part.data.name];
      Object.values(part).forEach((item) => collectDatasets(item, found));
    }
    return found;
  };

  const recolour = (spec, mode) => {
    if (mode === "light") return structuredClone(spec);
    let text = JSON.stringify(spec);
    for (const [light, darker] of Object.entries(store.dark)) text = text.replaceAll(`"${light}"`, `"${darker}"`);
    return JSON.parse(text);
  };

  // The legend is text on the page (reports/legend.py).
  const withoutLegend = (spec) => {
    (spec.layer || [spec]).forEach(({ encoding }) => ["color", "fill", "shape"].forEach((channel) => {
      if (encoding && encoding[channel] && encoding[channel].scale) encoding[channel].legend = null;
    }));
    return spec;
  };

  // Panels of a grid need fixed widths: divide the width of the page among them, or stack them on a narrow page.
  const PANEL = 420, PANEL_AXES = 100;
  const fitToWidth = (spec, columns, width) => {
    if (columns) {
      const perRow = Math.max(1, Math.min(spec.concat.length, Math.floor(width / PANEL)));
      spec.columns = perRow;
      spec.concat.forEach((panel) => { panel.width = Math.max(160, Math.floor(width / perRow) - PANEL_AXES); });
    } else if (width < 620) {
      (spec.layer || [spec]).forEach(({ encoding }) => {
        const axis = encoding && encoding.y && encoding.y.axis;
        if (axis && axis.labelLimit && !axis.labelAlign) axis.labelLimit = 0.3 * width;
      });
    }
    return spec;
  };

  // The range of sequence numbers between two times, so that the time-sequence graph follows the zoom of other charts.
  const sequenceRange = (view, [from, to]) => {
    let low = Infinity, high = -Infinity;
    for (const name of Object.keys(view.getState({ data: (name) => /^data-/.test(name), signals: () => false }).data || {})) {
      for (const row of view.data(name)) {
        if (row.t < from || row.t > to || row.seq_end === undefined) continue;
        low = Math.min(low, row.seq);
        high = Math.max(high, row.seq_end);
      }
    }
    const margin = 0.05 * (high - low);
    return low < high ? [low - margin, high + margin] : null;
  };

  const hasSequence = (view) => "time_seq" in view.getState({ signals: (name) => name === "time_seq", data: () => false }).signals;

  const apply = (number) => {
    const view = views.get(number), { time, sequence } = domains.get(store.charts[number].group) || {};
    stale.delete(number);
    if (hasSequence(view)) view.signal("time_seq", time ? sequence || sequenceRange(view, time) : null);
    return view.signal(store.zoom, time || null).runAsync();
  };

  // Zooms all charts of a group: those in view at once, the others when they come into view.
  const zoom = (number, time, sequence = null) => {
    const group = store.charts[number].group;
    domains.set(group, { time, sequence });
    const drawn = [];
    store.charts.forEach((chart, other) => {
      if (chart.group !== group || !views.has(other)) return;
      tools[other].querySelector("[data-do=reset]").disabled = !time;
      if (other === number || inView.has(other)) drawn.push(apply(other));
      else stale.add(other);
    });
    return Promise.all(drawn);
  };

  const viewport = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const number = Number(target.dataset.chart);
      if (!isIntersecting) inView.delete(number);
      else {
        inView.add(number);
        if (stale.has(number)) apply(number);
      }
    }
  });

  const visibleDomain = (view) => view.scale("x").domain().map(Number);
  const around = ([a, b], centre, factor) => [centre - (centre - a) * factor, centre + (b - centre) * factor];
  const middle = ([a, b]) => (a + b) / 2;

  const keys = {
    ArrowLeft: ([a, b]) => [a - 0.1 * (b - a), b - 0.1 * (b - a)],
    ArrowRight: ([a, b]) => [a + 0.1 * (b - a), b + 0.1 * (b - a)],
    "+": (domain) => around(domain, middle(domain), 0.6),
    "=": (domain) => around(domain, middle(domain), 0.6),
    "-": (domain) => around(domain, middle(domain), 1 / 0.6),
    0: () => null,
  };

  const onKey = (number) => (event) => {
    const view = views.get(number);
    const move = keys[event.key];
    if (!view || !move || event.ctrlKey || event.altKey || event.metaKey || event.target !== containers[number]) return;
    event.preventDefault();
    zoom(number, move(visibleDomain(view)));
  };

  // Position of a pointer in the plot of a chart, in pixels, and the size of the plot.
  const place = (number, event) => {
    const view = views.get(number), frame = containers[number].querySelector("svg, canvas").getBoundingClientRect();
    const [left, top] = view.origin(), width = view.signal("width"), height = view.signal("height");
    const clip = (value, max) => Math.max(0, Math.min(max, value));
    const x = event.clientX - frame.left - left, y = event.clientY - frame.top - top;
    return { x: clip(x, width), y: clip(y, height), left, top, width, height, inside: x >= 0 && x <= width && y >= 0 && y <= height };
  };

  const SMALLEST_BOX = 6; // pixels; a shorter drag is a click
  const onPointerDown = (number) => (event) => {
    const view = views.get(number);
    if (!view || event.button || event.pointerType === "touch") return;
    const start = place(number, event);
    if (!start.inside) return;
    event.preventDefault();
    const container = containers[number], domain = visibleDomain(view), scale = view.scale("x"), up = view.scale("y");
    container.focus({ preventScroll: true });
    const box = document.createElement("div");
    box.className = "zoombox";
    const tall = hasSequence(view);
    const invert = (axis, from, to) => [axis.invert(from), axis.invert(to)].map(Number).sort((a, b) => a - b);
    const onMove = (moved) => {
      const at = place(number, moved);
      if (event.shiftKey) {
        const shift = (start.x - at.x) / start.width * (domain[1] - domain[0]);
        zoom(number, [domain[0] + shift, domain[1] + shift]);
        return;
      }
      if (!box.isConnected) container.append(box);
      const [top, bottom] = tall ? [Math.min(start.y, at.y), Math.max(start.y, at.y)] : [0, start.height];
      Object.assign(box.style, {
        left: `${start.left + Math.min(start.x, at.x)}px`, width: `${Math.abs(at.x - start.x)}px`,
        top: `${start.top + top}px`, height: `${bottom - top}px`,
      });
    };
    const onUp = (ended) => {
      document.removeEventListener("pointermove", onMove);
      document.removeEventListener("pointerup", onUp);
      document.removeEventListener("pointercancel", onUp);
      box.remove();
      if (event.shiftKey || ended.type === "pointercancel") return;
      const at = place(number, ended);
      if (Math.abs(at.x - start.x) < SMALLEST_BOX) return;
      const rows = tall && Math.abs(at.y - start.y) >= SMALLEST_BOX ? invert(up, start.y, at.y) : null;
      zoom(number, invert(scale, start.x, at.x), rows);
    };
    document.addEventListener("pointermove", onMove);
    document.addEventListener("pointerup", onUp);
    document.addEventListener("pointercancel", onUp);
  };

  const onWheel = (number) => (event) => {
    const view = views.get(number);
    if (!view || !(event.altKey || event.ctrlKey)) return;
    const at = place(number, event);
    if (!at.inside) return;
    event.preventDefault();
    zoom(number, around(visibleDomain(view), Number(view.scale("x").invert(at.x)), Math.exp(event.deltaY / 400)));
  };

  const save = (name, href) => {
    const link = document.createElement("a");
    link.download = name;
    link.href = href;
    document.body.append(link);
    link.click();
    link.remove();
  };

  const fileName = (number) => store.charts[number].title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

  // A picture has the title and the legend that are text on the page.
  const saveImage = async (number, form) => {
    const { spec, title, columns } = store.charts[number];
    const picture = fitToWidth(recolour(spec, "light"), columns, 900);
    if (!columns) picture.width = 860;
    picture.title = title;
    picture.datasets = collectDatasets(spec);
    const result = await window.vegaEmbed(document.createElement("div"), picture, {
      mode: "vega-lite", config: store.configs.light, actions: false,
    });
    if (domains.has(store.charts[number].group)) {
      const from = views.get(number), names = (name) => name === store.zoom || name === "time_seq";
      const { signals } = from.getState({ signals: names, data: () => false });
      Object.entries(signals).forEach(([name, value]) => result.view.signal(name, value));
      await result.view.runAsync();
    }
    save(`${fileName(number)}.${form}`, await result.view.toImageURL(form, 2));
    result.view.finalize();
  };

  // Rows of the drawn data, one column for the series; a text that a spreadsheet would take for a formula is quoted.
  const toCsv = (number) => {
    const lines = [], names = ["series"];
    const cell = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      const safe = /^'*[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const layersOf = (part) => part.concat ? part.concat.flatMap(layersOf) : part.layer ? part.layer.flatMap((layer) =>
      layersOf({ ...layer, data: layer.data || part.data, named: part.title && (part.title.text || part.title) })) : [part];
    const tables = layersOf(store.charts[number].spec).map((layer) => {
      const label = (layer.transform || []).find((step) => step.as === "series");
      const table = layer.data && parseCsv(store.datasets[layer.data.name]);
      return { series: label ? JSON.parse(label.calculate) : layer.named || "", table };
    }).filter(({ table }) => table && table.length > 1);
    const seen = new Set();
    for (const { series, table } of tables) {
      const key = series + "\n" + table.length + "\n" + table[1].join();
      if (seen.has(key)) continue;
      seen.add(key);
      const columns = table[0].map((name) => {
        if (!names.includes(name)) names.push(name);
        return names.indexOf(name);
      });
      for (const row of table.slice(1)) {
        const line = [series];
        row.forEach((value, at) => { line[columns[at]] = value; });
        lines.push(line);
      }
    }
    return [names, ...lines].map((line) => Array.from(names, (_, at) => cell(line[at])).join(",")).join("\n") + "\n";
  };

  const parseCsv = (text) => {
    if (typeof text !== "string") return null;
    const rows = [[]];
    for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
      rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
      if (end === "\n") rows.push([]);
      if (end === "") break;
    }
    return rows.filter((row) => row.length > 1 || row[0]);
  };

  const actions = {
    in: (number) => zoom(number, keys["+"](visibleDomain(views.get(number)))),
    out: (number) => zoom(number, keys["-"](visibleDomain(views.get(number)))),
    reset: (number) => zoom(number, null),
    png: (number) => saveImage(number, "png"),
    svg: (number) => saveImage(number, "svg"),
    csv: (number) => save(`${fileName(number)}.csv`, URL.createObjectURL(new Blob([toCsv(number)], { type: "text/csv" }))),
  };

  const draw = async (number, mode) => {
    const { spec, group, columns } = store.charts[number];
    const container = containers[number];
    const full = withoutLegend(fitToWidth(recolour(spec, mode), columns, container.clientWidth));
    full.datasets = collectDatasets(spec);
    const before = views.get(number);
    if (before) before.finalize();
    const result = await window.vegaEmbed(container, full, {
      mode: "vega-lite", config: store.configs[mode], tooltip: { theme: mode }, actions: false,
    });
    views.set(number, result.view);
    if ((domains.get(group) || {}).time) await apply(number);
  };

  const task = () => new Promise((resume) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resume;
    port2.postMessage(0);
  });
  const HIDDEN_MS = 200; // a page in the background has no frames
  const frame = () => Promise.race([
    new Promise((resume) => { requestAnimationFrame(resume); }), new Promise((resume) => { setTimeout(resume, HIDDEN_MS); }),
  ]);

  // Charts in view first, then the others from the top.
  const inOrder = () => {
    const near = containers.map((container) => {
      const { top, bottom } = container.getBoundingClientRect();
      return bottom > 0 && top < window.innerHeight;
    });
    return [...near.keys()].sort((a, b) => near[b] - near[a] || a - b);
  };

  // The page shows its text, and answers the reader, between one chart and the next; `atOnce` is for a printer, which does not wait.
  const drawAll = async (mode, atOnce = false) => {
    const current = ++generation;
    document.documentElement.removeAttribute("data-drawn");
    let failed = 0;
    if (!atOnce) await frame();
    for (const number of inOrder()) {
      if (!atOnce) await task();
      if (current !== generation) break;
      try {
        await draw(number, mode);
      } catch (error) {
        failed++;
        containers[number].textContent = `This chart could not be drawn: ${error.message}`;
        console.error(error);
      }
    }
    if (current === generation) document.documentElement.setAttribute("data-drawn", String(containers.length - failed));
  };

  const mode = () => (dark.matches ? "dark" : "light");
  containers.forEach((container, number) => {
    tools[number].addEventListener("click", ({ target }) => {
      if (views.has(number) && target.dataset.do in actions) actions[target.dataset.do](number);
    });
    if (!store.charts[number].group) return;
    viewport.observe(container);
    container.addEventListener("keydown", onKey(number));
    container.addEventListener("pointerdown", onPointerDown(number));
    container.addEventListener("wheel", onWheel(number), { passive: false });
    container.addEventListener("dblclick", () => zoom(number, null));
  });
  dark.addEventListener("change", () => drawAll(mode()));
  window.addEventListener("beforeprint", () => {
    stale.forEach(apply);
    if (dark.matches || views.size < containers.length) drawAll("light", true);
  });
  window.addEventListener("afterprint", () => { if (dark.matches) drawAll("dark"); });
  let width = document.body.clientWidth, pending = 0;
  window.addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => {
      if (document.body.clientWidth === width) return;
      width = document.body.clientWidth;
      store.charts.forEach((chart, number) => { if (chart.columns) draw(number, mode()).catch(console.error); });
    }, 200);
  });
  drawAll(mode());
})();
