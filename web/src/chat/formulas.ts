/** maxMathText is the length of text above which formulas are not rendered. */
const maxMathText = 50_000;

/** mayHaveMath reports whether a text may have formulas. */
export const mayHaveMath = (text: string) => text.length <= maxMathText && (text.includes('$') || text.includes('\\(') || text.includes('\\['));

/**
 * delimitFormulas delimits the formulas of a text with double dollars, outside code: \(…\),
 * \[…\], and $…$ if it is a formula and not a price.
 */
export function delimitFormulas(text: string): string {
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
