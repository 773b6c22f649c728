// Writes values as Grafana's panels do, by Grafana's own code. It reads `[{config, values}]`, where config is what the
// JSON of a panel has as `fieldConfig.defaults`, and writes a list of texts for each.
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
