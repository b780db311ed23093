// Elements without a framework.

type Child = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

/** h("button", { class: "x", onclick: f, "aria-label": "y" }, ...children) */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]):
  HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), v as EventListener);
    else if (name === "value" || name === "checked") (e as unknown as Props)[name] = v;
    else e.setAttribute(name, v === true ? "" : String(v));
  }
  for (const c of children) if (c || c === "") e.append(c);
  return e;
}

/** An icon of 24 x 24 strokes. */
export function icon(path: string): SVGSVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const p = document.createElementNS(ns, "path");
  p.setAttribute("d", path);
  svg.append(p);
  return svg;
}

export const ICONS = {
  send: "M12 19V5M5 12l7-7 7 7",
  stop: "M7 7h10v10H7z",
  retry: "M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6 6 18",
  check: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  edit: "M12 5v14M5 12h14",
  file: "M14 3H6v18h12V7zM14 3v4h4",
};

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  for (; n >= 1024 && i < 3; i++) n /= 1024;
  return `${n.toLocaleString(document.documentElement.lang, { maximumFractionDigits: n < 10 && i ? 1 : 0 })} ${units[i]}`;
}

export function num(n: number, digits = 0): string {
  return n.toLocaleString(document.documentElement.lang, { maximumFractionDigits: digits });
}
