// Named arguments of a tool, kept in this browser.

const key = 'junctor.presets';

type Presets = Record<string, unknown>;

function allPresets(): Record<string, Presets> {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? '{}') as unknown;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, Presets>) : {};
  } catch {
    return {};
  }
}

/** presetsOf returns the presets of a tool, server:tool, by name. */
export function presetsOf(tool: string): Presets {
  const own = allPresets()[tool];
  return typeof own === 'object' && own !== null ? own : {};
}

/** setPreset saves arguments under a name, or deletes the preset when args is undefined. It reports whether it was stored. */
export function setPreset(tool: string, name: string, args: unknown): boolean {
  const presets = allPresets();
  const own = { ...presetsOf(tool), [name]: args };
  if (args === undefined) delete own[name];
  presets[tool] = own;
  if (Object.keys(own).length === 0) delete presets[tool];
  try {
    localStorage.setItem(key, JSON.stringify(presets));
    return true;
  } catch {
    return false; // storage is disabled or full
  }
}
