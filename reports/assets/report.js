// Draws the charts of a report in the colours of the page; charts of one group zoom together.
// Needs `vegaEmbed` (the script above) and the JSON in #charts, and loads nothing. A chart is {spec, group, columns}.
(function () {
  "use strict";
  const store = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // chart number -> Vega view
  const containers = store.charts.map((_, number) => document.getElementById(`chart-${number}`));
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

  // Panels of a grid need fixed widths: divide the width of the page among them, or stack them on a narrow page.
  const fitToWidth = (spec, columns, width) => {
    if (!columns) return spec;
    const perRow = width < 620 ? 1 : columns;
    spec.columns = perRow;
    spec.concat.forEach((panel) => { panel.width = Math.max(160, Math.floor(width / perRow) - 84); });
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

  const setDomain = (view, domain) => {
    const signals = view.getState({ signals: (name) => name && name.startsWith("time_"), data: () => false }).signals;
    if ("time_seq" in signals) view.signal("time_seq", domain && sequenceRange(view, domain));
    view.signal(store.zoom, domain).runAsync();
  };

  let linking = false;
  const link = (number, domain) => {
    if (linking) return;
    linking = true;
    const group = store.charts[number].group;
    for (const [other, view] of views) {
      if (other !== number && store.charts[other].group === group) setDomain(view, domain);
    }
    linking = false;
  };

  const visibleDomain = (view) => view.scale("x").domain().map(Number);

  const keys = {
    ArrowLeft: ([a, b]) => [a - 0.1 * (b - a), b - 0.1 * (b - a)],
    ArrowRight: ([a, b]) => [a + 0.1 * (b - a), b + 0.1 * (b - a)],
    "+": ([a, b]) => [a + 0.2 * (b - a), b - 0.2 * (b - a)],
    "=": ([a, b]) => [a + 0.2 * (b - a), b - 0.2 * (b - a)],
    "-": ([a, b]) => [a - (b - a) / 3, b + (b - a) / 3],
    0: () => null,
  };

  const onKey = (number) => (event) => {
    const view = views.get(number);
    const move = keys[event.key];
    if (!view || !move || event.ctrlKey || event.altKey || event.metaKey || event.target !== containers[number]) return;
    event.preventDefault();
    const domain = move(visibleDomain(view));
    setDomain(view, domain);
    link(number, domain);
  };

  const draw = async (number, mode) => {
    const { spec, group, columns } = store.charts[number];
    const container = containers[number];
    const full = fitToWidth(recolour(spec, mode), columns, container.clientWidth);
    full.datasets = collectDatasets(spec);
    const before = views.get(number);
    if (before) before.finalize();
    const title = container.parentElement.querySelector("h3, h4").textContent;
    const result = await window.vegaEmbed(container, full, {
      mode: "vega-lite",
      config: store.configs[mode],
      tooltip: { theme: mode },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: title.toLowerCase().replace(/[^a-z0-9]+/g, "-"),
    });
    views.set(number, result.view);
    if (group) {
      result.view.addSignalListener(store.zoom, (_, domain) => link(number, domain));
      result.view.addEventListener("dblclick", () => link(number, null));
    }
  };

  const drawAll = async (mode) => {
    const current = ++generation;
    document.documentElement.removeAttribute("data-drawn");
    let failed = 0;
    for (let number = 0; number < containers.length && current === generation; number++) {
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
    if (store.charts[number].group) container.addEventListener("keydown", onKey(number));
  });
  dark.addEventListener("change", () => drawAll(mode()));
  window.addEventListener("beforeprint", () => { if (dark.matches) drawAll("light"); });
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
