// Judges outlines by the TypeScript compiler: but for the bodies of functions they have the same tokens as the files.
//
//     node judge.js TYPESCRIPT FILES OUTLINES
//
// Prints how much was compared and every difference.

const fs = require('node:fs');
const path = require('node:path');

const [compiler, files, outlines] = process.argv.slice(2);
const ts = require(compiler);
const total = { files: 0, imports: 0, signatures: 0, problems: [] };

function isBody(node) {
  return ts.isBlock(node) && (ts.isFunctionLike(node.parent) || ts.isClassStaticBlockDeclaration(node.parent));
}

function isImport(node) {
  return ts.isImportDeclaration(node) || ts.isImportEqualsDeclaration(node) || ts.isExportDeclaration(node);
}

function isSignature(node) {
  return ts.isFunctionLike(node) || ts.isClassLike(node) || ts.isInterfaceDeclaration(node);
}

/** Every token outside of bodies, documentation included. */
function tokens(file, counts) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  if (source.parseDiagnostics.length > 0) {
    const first = source.parseDiagnostics[0];
    const { line } = source.getLineAndCharacterOfPosition(first.start);
    throw new Error(`line ${line + 1}: ${ts.flattenDiagnosticMessageText(first.messageText, ' ')}`);
  }
  const found = [];
  const visit = (node) => {
    if (isBody(node)) {
      found.push('{}');
      return;
    }
    counts.imports += isImport(node) ? 1 : 0;
    counts.signatures += isSignature(node) ? 1 : 0;
    const children = ts.isJSDoc(node) ? [] : node.getChildren(source);
    if (children.length === 0 && node.kind !== ts.SyntaxKind.EndOfFileToken) {
      found.push(node.getText(source));
    }
    children.forEach(visit);
  };
  visit(source);
  return found;
}

function listed(folder) {
  const all = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name)).sort();
}

for (const outline of listed(outlines)) {
  const name = path.relative(outlines, outline);
  try {
    const counts = { imports: 0, signatures: 0 };
    const here = tokens(path.join(files, name), counts);
    const there = tokens(outline, { imports: 0, signatures: 0 });
    total.files += 1;
    total.imports += counts.imports;
    total.signatures += counts.signatures;
    const at = here.findIndex((token, i) => token !== there[i]);
    if (at >= 0 || here.length !== there.length) {
      const shown = (all) => all.slice(Math.max(at - 5, 0), at + 5).join(' ');
      total.problems.push(`${name}: ${shown(here)} became ${shown(there)}`);
    }
  } catch (error) {
    total.problems.push(`${name}: ${error.message}`);
  }
}
console.log(JSON.stringify(total));
