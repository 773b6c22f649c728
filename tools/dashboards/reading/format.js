// Formats values with Grafana's formatters. It reads `[{config, values}]` from stdin, where config is the field
// `fieldConfig.defaults` of a panel, and writes a list of texts for each element.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createTheme, FieldType, formattedValueToString, getDisplayProcessor } from '@grafana/data';

const theme = createTheme();
const panels = JSON.parse(readFileSync(0, 'utf8'));
const texts = panels.map(({ config, values }) => {
  const display = getDisplayProcessor({ field: { type: FieldType.number, config }, theme });
  return values.map((value) => formattedValueToString(display(value)));
});
process.stdout.write(JSON.stringify(texts));
