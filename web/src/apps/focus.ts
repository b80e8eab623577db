/** An app that takes the focus more often than this in a time, in milliseconds, is stopped. */
const maxTaken = 3;
const within = 10_000;

/** A field is in use for this long after a key or after it got the focus, in milliseconds. */
const inUse = 1000;

/**
 * keepFocus returns the focus to a field in use when an app takes it, so that what
 * is typed there does not go to the app. Otherwise the focus may go to the frame:
 * a click in a frame of another origin cannot be seen here. taken is called when
 * the app does not stop trying.
 */
export function keepFocus(frame: HTMLIFrameElement, taken: () => void): () => void {
  let last = document.activeElement;
  let used = -Infinity;
  let tabbed = -Infinity;
  let times: number[] = [];
  const focused = (e: FocusEvent) => {
    if (e.target === frame) return;
    last = e.target as Element;
    used = performance.now();
  };
  const key = (e: KeyboardEvent) => {
    used = performance.now();
    if (e.key === 'Tab') tabbed = used;
  };
  const blurred = () => {
    if (document.activeElement !== frame || !(last instanceof HTMLElement) || !last.isConnected || !last.matches('input, textarea, select')) return;
    const now = performance.now();
    const touch = matchMedia('(hover: none)').matches; // a tap in the frame is not seen here
    if (touch || now - tabbed < inUse || now - used > inUse) return;
    const field = last;
    setTimeout(() => field.focus({ preventScroll: true })); // when the focus has arrived at the frame
    times = [...times.filter((t) => now - t < within), now];
    if (times.length > maxTaken) taken();
  };
  document.addEventListener('focusin', focused);
  document.addEventListener('keydown', key, true);
  window.addEventListener('blur', blurred);
  return () => {
    document.removeEventListener('focusin', focused);
    document.removeEventListener('keydown', key, true);
    window.removeEventListener('blur', blurred);
  };
}
