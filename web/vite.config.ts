import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The page goes into the folder that the binary embeds. public/.gitkeep is
// copied there, so that the folder is never empty.
export default defineConfig({
  plugins: [react()],
  // A test helper inside @rjsf/core imports a validator that compiles code;
  // it is removed by tree shaking, and must not be resolved to that one.
  resolve: { alias: { '@rjsf/validator-ajv8': new URL('src/tools/validator.ts', import.meta.url).pathname } },
  // The alias applies to tests, too.
  test: { css: true, testTimeout: 60_000, server: { deps: { inline: ['@rjsf/core'] } } },
  build: {
    outDir: '../internal/webui/dist',
    emptyOutDir: true,
    // Inlined assets would be data: URLs, which the page's policy forbids for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: {
    // `npm run dev` beside a gateway on its usual address.
    proxy: Object.fromEntries(
      ['/api', '/app-frame', '/ws', '/tools', '/execute', '/run', '/logs', '/health', '/oauth', '/mcp'].map((path) => [
        path,
        { target: 'http://127.0.0.1:8787', ws: path === '/ws', changeOrigin: true },
      ]),
    ),
  },
});
