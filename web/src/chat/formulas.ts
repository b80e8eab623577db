/** maxMathText is the length above which formulas are not looked for. */
const maxMathText = 50_000;

/** hasMath reports whether a text may have formulas. */
export const hasMath = (text: string) => text.length <= maxMathText && (text.includes('$') || text.includes('\\(') || text.includes('\\['));

/**
 * withFormulas writes the formulas of a text between double dollars, outside code: \(…\),
 * \[…\], and $…$ where it is a formula and not a price.
 */
export function withFormulas(text: string): string {
  return text
    .split(/(^ {0,3}(?:`{3,}|~{3,})[\s\S]*?(?:^ {0,3}(?:`{3,}|~{3,})[ \t]*$|$(?![\s\S]))|`+[^`\n]*`+)/m)
    .map((part, i) =>
      i % 2 === 1
        ? part
        : part
            .replace(/\\\[([\s\S]{1,2000}?)\\\]/g, (_, tex: string) => '\n$$\n' + tex.trim() + '\n$$\n')
            .replace(/\\\(([^\n]+?)\\\)/g, (_, tex: string) => '$$' + tex.trim() + '$$')
            .replace(/(^|[^\\$])\$(?![\s$])([^$\n]{1,300}?)(?<![\s\\])\$(?![\d$])/g, (whole, before: string, tex: string) => (/[\\^_=+<>{}]|^[a-zA-Z]$/.test(tex) ? before + '$$' + tex + '$$' : whole)),
    )
    .join('');
}
