/** memoryStorage is a Storage whose keys are its own properties, as in a browser. */
export function memoryStorage(): Storage {
  const methods = {
    getItem: (k: string) => (Object.hasOwn(storage, k) ? storage[k]! : null),
    setItem: (k: string, v: string) => void (storage[k] = v),
    removeItem: (k: string) => void delete storage[k],
  };
  const storage = Object.create(methods) as Record<string, string> & typeof methods;
  return storage as unknown as Storage;
}
