// Results that the call log truncated, as a string: the first bytes of
// their JSON and the total number of bytes (internal/executor, excerpt).

const truncationSuffix = /… \((\d+) bytes in all\)$/;

/** parseTruncated returns the kept part of a truncated result and its full size, or undefined if the text is not truncated. */
export function parseTruncated(text: string): { value: unknown; bytes: number } | undefined {
  const bytes = truncationSuffix.exec(text)?.[1];
  if (bytes === undefined) return undefined;
  const value = parseJsonPrefix(text.replace(truncationSuffix, ''));
  return value === undefined ? undefined : { value, bytes: Number(bytes) };
}

/** parseJsonPrefix parses the beginning of a JSON text by closing the strings, objects and arrays that are open at its end. */
export function parseJsonPrefix(text: string): unknown {
  const open: string[] = []; // the closing brackets of the open objects and arrays
  let inString = false;
  let escape = -1; // the start of the last escape sequence
  let safe = -1; // the last position where a member or an element may end
  let safeOpen = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (inString) {
      if (c === '\\') escape = i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === '{' || c === '[') {
      open.push(c === '{' ? '}' : ']');
      [safe, safeOpen] = [i + 1, open.join('')];
    } else if (c === '}' || c === ']') open.pop();
    else if (c === ',') [safe, safeOpen] = [i, open.join('')];
  }
  const close = (s: string) => [...s].reverse().join('');
  // Drop an incomplete escape sequence at the end of a string.
  const complete = inString && escape >= 0 && text.length - escape < (text[escape + 1] === 'u' ? 6 : 2) ? text.slice(0, escape) : text;
  return tryParse(complete + (inString ? '…"' : '') + close(open.join(''))) ?? (safe >= 0 ? tryParse(text.slice(0, safe) + close(safeOpen)) : undefined);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
