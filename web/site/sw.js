// Keeps the page's own files, so that it opens without a network. Models are none of its business:
// the frit package stores those. FILES and VERSION are written above by the build.
const NAME = `frit-site-${VERSION}`;

self.addEventListener("install", (e) => {
  e.waitUntil(caches.open(NAME).then((c) => c.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (e) => {
  e.waitUntil((async () => {
    for (const name of await caches.keys())
      if (name.startsWith("frit-site-") && name !== NAME) await caches.delete(name);
    await self.clients.claim();
  })());
});

self.addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== location.origin || e.request.headers.has("Range")) return;
  e.respondWith((async () => {
    const kept = await (await caches.open(NAME)).match(e.request, { ignoreSearch: true });
    return kept ?? fetch(e.request);
  })());
});
