/** memoryStorage is a Storage whose keys are its own properties, as in a browser. */
export function memoryStorage(): Storage {
  const methods = {
    getItem: (k: string) => (Object.hasOwn(kept, k) ? kept[k]! : null),
    setItem: (k: string, v: string) => void (kept[k] = v),
    removeItem: (k: string) => void delete kept[k],
  };
  const kept = Object.create(methods) as Record<string, string> & typeof methods;
  return kept as unknown as Storage;
}
