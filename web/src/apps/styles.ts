/** pageVariables maps the CSS variables of MCP Apps to those of the page. */
const pageVariables: Record<string, string> = {
  '--color-background-primary': '--surface',
  '--color-background-secondary': '--bg',
  '--color-background-tertiary': '--sunken',
  '--color-background-inverse': '--ink',
  '--color-background-ghost': '--surface',
  '--color-background-info': '--accent-soft',
  '--color-background-danger': '--bad-soft',
  '--color-background-success': '--ok-soft',
  '--color-background-warning': '--warn-soft',
  '--color-background-disabled': '--sunken',
  '--color-text-primary': '--ink',
  '--color-text-secondary': '--muted',
  '--color-text-tertiary': '--muted',
  '--color-text-inverse': '--surface',
  '--color-text-info': '--accent',
  '--color-text-danger': '--bad',
  '--color-text-success': '--ok',
  '--color-text-warning': '--warn',
  '--color-text-disabled': '--muted',
  '--color-text-ghost': '--muted',
  '--color-border-primary': '--line-strong',
  '--color-border-secondary': '--line',
  '--color-border-tertiary': '--line',
  '--color-border-inverse': '--ink',
  '--color-border-ghost': '--line',
  '--color-border-info': '--accent',
  '--color-border-danger': '--bad',
  '--color-border-success': '--ok',
  '--color-border-warning': '--warn',
  '--color-border-disabled': '--line',
  '--color-ring-primary': '--focus',
  '--color-ring-secondary': '--focus',
  '--font-sans': '--sans',
  '--font-mono': '--mono',
  '--border-radius-md': '--r',
};

/** appStyleVariables returns the CSS variables of MCP Apps with the current values of the page. */
export function appStyleVariables(page: CSSStyleDeclaration): Record<string, string> {
  return Object.fromEntries(Object.entries(pageVariables).map(([name, pageVariable]) => [name, page.getPropertyValue(pageVariable).trim()]));
}
