// Results that the call log keeps in part, as a string: the first bytes of
// their JSON and how many there were (internal/executor, excerpt).

const mark = /… \((\d+) bytes in all\)$/;

/** uncut returns the value of a result that was cut, as far as it was kept, and its size; undefined if it is none. */
export function uncut(text: string): { value: unknown; bytes: number } | undefined {
  const bytes = mark.exec(text)?.[1];
  if (bytes === undefined) return undefined;
  const value = parsePart(text.replace(mark, ''));
  return value === undefined ? undefined : { value, bytes: Number(bytes) };
}

/** parsePart parses the beginning of a JSON text by closing what is open at its end. */
export function parsePart(text: string): unknown {
  const open: string[] = []; // what closes the open objects and lists
  let inString = false;
  let escape = -1; // where the last escape sequence begins
  let safe = -1; // the last place where a member or an item may end
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
  // A string that ends here, without an escape sequence that is not whole.
  const whole = inString && escape >= 0 && text.length - escape < (text[escape + 1] === 'u' ? 6 : 2) ? text.slice(0, escape) : text;
  return tryParse(whole + (inString ? '…"' : '') + close(open.join(''))) ?? (safe >= 0 ? tryParse(text.slice(0, safe) + close(safeOpen)) : undefined);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
