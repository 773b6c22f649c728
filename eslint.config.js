// @ts-check
import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['node_modules/', 'bin/', 'results/', 'internal/report/html/bundle/'] },
  js.configs.recommended,
  {
    files: ['load-tests/**/*.js', 'examples/*.js', 'k6/sse/*.js', 'tools/bench/**/*.js', 'test/e2e/**/*.js', 'test/services/*.js'],
    languageOptions: {
      ecmaVersion: 2022,
      globals: {
        __ENV: 'readonly',
        __VU: 'readonly',
        __ITER: 'readonly',
        open: 'readonly',
        require: 'readonly',
        console: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
      },
    },
    rules: {
      'no-console': 'error',
      'prefer-const': 'error',
      eqeqeq: 'error',
      curly: 'error',
      'no-var': 'error',
      'no-shadow': 'error',
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^https?:', message: 'Remote imports need a network; import a file of this repository.' }] },
      ],
    },
  },
  { files: ['examples/*.js'], rules: { 'no-console': 'off' } }, // examples print what they receive
  {
    files: ['internal/report/html/**/*.js'],
    languageOptions: { ecmaVersion: 2023, globals: { ...globals.browser, process: 'readonly' } },
    rules: { 'no-console': 'error', 'prefer-const': 'error', eqeqeq: 'error', curly: 'error', 'no-var': 'error', 'no-shadow': 'error' },
  },
  { files: ['*.config.js', 'tools/recording/*.js', 'test/services/ai-sdk/*.js'], languageOptions: { globals: globals.node } },
];
