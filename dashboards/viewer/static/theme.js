// Sets the theme before the first paint: the one that was chosen here, else the system's.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem('ragtide-theme'); } catch { /* no storage: the system's */ }
  const dark = chosen ? chosen === 'dark' : !window.matchMedia('(prefers-color-scheme: light)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
