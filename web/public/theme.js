// Runs before the first paint, so that the page never flashes in the other theme.
try {
  const chosen = localStorage.getItem('junctor.theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's choice holds.
}
