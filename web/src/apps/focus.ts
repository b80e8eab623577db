/** An app that takes the focus more than maxSteals times within stealWindowMs is stopped. */
const maxSteals = 3;
const stealWindowMs = 10_000;

/** A field counts as in use for this long after a key press or after it got the focus. */
const activeMs = 1000;

/**
 * guardFocus returns the focus to a field in use when an app takes it, so that input
 * for the field does not go to the app. Otherwise the focus may go to the frame:
 * a click in a frame of another origin cannot be detected here. onFocusStolen is called
 * when the app takes the focus too often.
 */
export function guardFocus(frame: HTMLIFrameElement, onFocusStolen: () => void): () => void {
  let lastFocused = document.activeElement;
  let lastUsed = -Infinity;
  let lastTab = -Infinity;
  let stealTimes: number[] = [];
  const onFocusIn = (e: FocusEvent) => {
    if (e.target === frame) return;
    lastFocused = e.target as Element;
    lastUsed = performance.now();
  };
  const onKeyDown = (e: KeyboardEvent) => {
    lastUsed = performance.now();
    if (e.key === 'Tab') lastTab = lastUsed;
  };
  const onBlur = () => {
    if (document.activeElement !== frame || !(lastFocused instanceof HTMLElement) || !lastFocused.isConnected || !lastFocused.matches('input, textarea, select')) return;
    const now = performance.now();
    const touch = matchMedia('(hover: none)').matches; // a tap in the frame cannot be detected
    if (touch || now - lastTab < activeMs || now - lastUsed > activeMs) return;
    const field = lastFocused;
    setTimeout(() => field.focus({ preventScroll: true })); // after the frame has got the focus
    stealTimes = [...stealTimes.filter((t) => now - t < stealWindowMs), now];
    if (stealTimes.length > maxSteals) onFocusStolen();
  };
  document.addEventListener('focusin', onFocusIn);
  document.addEventListener('keydown', onKeyDown, true);
  window.addEventListener('blur', onBlur);
  return () => {
    document.removeEventListener('focusin', onFocusIn);
    document.removeEventListener('keydown', onKeyDown, true);
    window.removeEventListener('blur', onBlur);
  };
}
