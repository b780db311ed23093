// English and Spanish. Texts that stay on the page are set again when the language changes.
import type { Fallback } from "frit";

const en = {
  tagline: "A language model that runs in this tab. Nothing you write leaves it.",
  model: "Model", which: "Which one", system_theme: "System", builtin: "Built in", fromUrl: "From a URL", fromFile: "From a file", url: "Address of a GGUF file",
  choose: "Choose a GGUF file", drop: "or drop one anywhere on this page", check: "Check", load: "Load", cancel: "Cancel",
  unload: "Unload", loaded: "Loaded", device: "Device", auto: "Automatic", cpu: "CPU", gpu: "GPU", context: "Context (tokens)",
  keep: "Keep in this browser", settings: "Settings", system: "System prompt", temperature: "Temperature", top_p: "Top p",
  top_k: "Top k (0: off)", min_p: "Min p", repetition_penalty: "Repetition penalty", max_tokens: "Answer, at most",
  seed: "Seed (empty: random)", cache: "Stored models", empty: "No model is stored.", remove: "Delete",
  partial: "partly stored", used: "Storage used", placeholder: "Write a message", send: "Send", stop: "Stop",
  retry: "Try again", copy: "Copy", copied: "Copied", newChat: "New chat", panel: "Model and settings", close: "Close",
  download: "Downloading", upload: "Copying to the device", compile: "Compiling kernels", warmup: "Warming up", ready: "Ready",
  opening: "Opening", you: "You", assistant: "Assistant", firstToken: "first token", tokens: "tokens", perSecond: "tok/s",
  stopped: "stopped", length: "cut at the longest length", memory: "Memory in use", heap: "wasm heap", features: "Features",
  limits: "Limits", fallbacks: "Fall-backs", noFallbacks: "None is active.", noDevice: "Load a model to see the device.",
  fits: "Fits", fitsNot: "Does not fit", needs: "needs about", language: "Language", loadFirst: "Load a model to begin.",
  answered: "Answer", failed: "Something went wrong", skip: "Skip to the message box", answering: "Answering", light: "Light", dark: "Dark",
  theme: "Theme", name: "Name", vendor: "Vendor", software: "Software adapter", yes: "yes", no: "no", try1: "Explain why the sky is blue.",
  try2: "Write a haiku about glass.", try3: "List three uses of sand.",
  precision: "Precision", f32: "Exact (f32)", verify: "Check SHA-256", verifying: "Checking", checked: "checked",
  asExpected: "its SHA-256 is as it should be", firstCheck: "its SHA-256 was computed and is kept for the next check",
  damaged: "it was damaged and has been deleted; load it again to fetch it",
  smaller: "A smaller model, a shorter context or the other device may do.",
};
const es: typeof en = {
  tagline: "Un modelo de lenguaje que funciona en esta pestaña. Nada de lo que escribas sale de ella.",
  model: "Modelo", which: "Cuál", system_theme: "Sistema", builtin: "Incluido", fromUrl: "Desde una URL", fromFile: "Desde un archivo", url: "Dirección de un archivo GGUF",
  choose: "Elegir un archivo GGUF", drop: "o suéltalo en cualquier parte de la página", check: "Comprobar", load: "Cargar",
  cancel: "Cancelar", unload: "Quitar", loaded: "Cargado", device: "Dispositivo", auto: "Automático", cpu: "CPU",
  gpu: "GPU", context: "Contexto (tokens)", keep: "Guardar en este navegador", settings: "Ajustes", system: "Instrucción del sistema",
  temperature: "Temperatura", top_p: "Top p", top_k: "Top k (0: sin límite)", min_p: "Min p",
  repetition_penalty: "Penalización por repetición", max_tokens: "Respuesta, máximo",
  seed: "Semilla (vacía: al azar)", cache: "Modelos guardados", empty: "No hay ningún modelo guardado.", remove: "Borrar",
  partial: "guardado en parte", used: "Espacio usado", placeholder: "Escribe un mensaje", send: "Enviar", stop: "Parar",
  retry: "Reintentar", copy: "Copiar", copied: "Copiado", newChat: "Chat nuevo", panel: "Modelo y ajustes", close: "Cerrar",
  download: "Descargando", upload: "Copiando al dispositivo", compile: "Compilando", warmup: "Calentando", ready: "Listo",
  opening: "Abriendo", you: "Tú", assistant: "Asistente", firstToken: "primer token", tokens: "tokens", perSecond: "tok/s",
  stopped: "parado", length: "cortado por longitud", memory: "Memoria en uso", heap: "memoria wasm", features: "Funciones",
  limits: "Límites", fallbacks: "Alternativas activas", noFallbacks: "Ninguna está activa.",
  noDevice: "Carga un modelo para ver el dispositivo.", fits: "Cabe", fitsNot: "No cabe", needs: "necesita unos", language: "Idioma",
  loadFirst: "Carga un modelo para empezar.", answered: "Respuesta", failed: "Algo ha fallado", skip: "Ir al cuadro de mensaje",
  answering: "Respondiendo", light: "Claro", dark: "Oscuro", theme: "Tema", name: "Nombre", vendor: "Fabricante",
  software: "Adaptador por software", yes: "sí", no: "no", try1: "Explica por qué el cielo es azul.",
  try2: "Escribe un haiku sobre el vidrio.", try3: "Di tres usos de la arena.",
  precision: "Precisión", f32: "Exacta (f32)", verify: "Comprobar SHA-256", verifying: "Comprobando", checked: "comprobado",
  asExpected: "su SHA-256 es el debido", firstCheck: "su SHA-256 se ha calculado y queda para la próxima comprobación",
  damaged: "estaba dañado y se ha borrado; cárgalo otra vez para descargarlo",
  smaller: "Quizá sirva un modelo más pequeño, un contexto más corto o el otro dispositivo.",
};

export const ES_FALLBACKS: Record<Fallback["code"], string> = {
  "no-webgpu": "Aquí no hay WebGPU: la CPU ejecuta el modelo.",
  "no-adapter": "WebGPU no ofrece ningún adaptador: la CPU ejecuta el modelo.",
  "software": "El único adaptador WebGPU es también software: la CPU ejecuta el modelo directamente.",
  "no-f16": "Sin números de 16 bits: los valores se guardan y calculan en 32 bits.",
  "no-subgroups": "Sin subgrupos: las sumas pasan por la memoria del grupo de trabajo.",
  "no-dot4i8": "Sin productos de 8 bits empaquetados: los pesos se multiplican como números reales.",
  "small-bindings": "El límite de enlace es pequeño: los tensores grandes se dividen.",
};

export type Key = keyof typeof en;
export type Lang = "en" | "es";
const TEXTS = { en, es };
const live: { node: WeakRef<Element>; set: (e: Element) => void }[] = [];
let lang: Lang = "en";

export function t(key: Key): string {
  return TEXTS[lang][key];
}
export const language = (): Lang => lang;

/** The element shows the text, now and in any language chosen later; `where` is an attribute. */
export function say<E extends Element>(e: E, key: Key, where?: string): E {
  const set = (x: Element) => (where ? x.setAttribute(where, t(key)) : (x.textContent = t(key)));
  set(e);
  live.push({ node: new WeakRef(e), set });
  return e;
}

/** The same with a text that is made of several. */
export function sayAll<E extends Element>(e: E, text: () => string): E {
  e.textContent = text();
  live.push({ node: new WeakRef(e), set: (x) => (x.textContent = text()) });
  return e;
}

export function setLanguage(to: Lang): void {
  lang = to;
  document.documentElement.lang = to;
  for (let i = live.length; i--;) {
    const e = live[i].node.deref();
    if (e) live[i].set(e);
    else live.splice(i, 1);
  }
}
