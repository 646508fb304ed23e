//! What is known of each language: one row per language, no code per language.

use std::sync::LazyLock;

/// A language as the engine sees it.
#[derive(Debug)]
pub struct Language {
    /// As it stands behind a fence and in metadata.
    pub name: &'static str,
    pub extensions: &'static [&'static str],
    /// What a comment to the end of the line begins with.
    pub line_comment: &'static str,
    pub block_comment: Option<(&'static str, &'static str)>,
    /// Delimiters of strings; longer ones first.
    pub strings: &'static [&'static str],
    /// Words that stand before the name of something that is defined.
    pub definers: &'static [&'static str],
    pub grammar: Option<Grammar>,
}

/// Node kinds of a language's grammar.
#[derive(Debug)]
pub struct Grammar {
    pub parser: fn() -> tree_sitter::Language,
    /// What has a body that can be left out.
    pub callables: &'static [&'static str],
    /// What holds callables.
    pub containers: &'static [&'static str],
    /// What is never left out, wherever it stands.
    pub imports: &'static [&'static str],
    pub body: BodyStyle,
}

/// How the body of a callable is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyStyle {
    /// Between braces, which stay.
    Braces,
    /// Lines up to a word such as `end`, which stays.
    Lines,
    /// Indented lines, of which the first may be a docstring, which stays; something has to be left.
    Docstring,
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));
const QUOTES: &[&str] = &["\"", "'"];
const DOUBLE: &[&str] = &["\""];
const SCRIPT_QUOTES: &[&str] = &["\"", "'", "`"];
const SCRIPT_DEFINERS: &[&str] =
    &["function", "class", "interface", "type", "enum", "const", "let", "var", "namespace", "module"];
const SCRIPT_CALLABLES: &[&str] = &[
    "function_declaration",
    "generator_function_declaration",
    "function_expression",
    "generator_function",
    "arrow_function",
    "method_definition",
    "class_static_block",
];
const SCRIPT_CONTAINERS: &[&str] =
    &["class_declaration", "class", "abstract_class_declaration", "internal_module", "module", "export_statement"];
const SCRIPT_IMPORTS: &[&str] = &["import_statement"];

/// Every language that is known. The first with a file's extension is the file's.
pub static LANGUAGES: &[Language] = &[
    Language {
        name: "rust",
        extensions: &["rs"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: DOUBLE,
        definers: &["fn", "struct", "enum", "trait", "type", "mod", "const", "static", "union", "macro_rules"],
        grammar: Some(Grammar {
            parser: || tree_sitter_rust::LANGUAGE.into(),
            callables: &["function_item"],
            containers: &["impl_item", "trait_item", "mod_item", "foreign_mod_item"],
            imports: &["use_declaration", "extern_crate_declaration"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "python",
        extensions: &["py", "pyi", "pyw"],
        line_comment: "#",
        block_comment: None,
        strings: &["\"\"\"", "'''", "\"", "'"],
        definers: &["def", "class"],
        grammar: Some(Grammar {
            parser: || tree_sitter_python::LANGUAGE.into(),
            callables: &["function_definition"],
            containers: &["class_definition", "decorated_definition"],
            imports: &["import_statement", "import_from_statement", "future_import_statement"],
            body: BodyStyle::Docstring,
        }),
    },
    Language {
        name: "javascript",
        extensions: &["js", "mjs", "cjs", "jsx"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: SCRIPT_QUOTES,
        definers: SCRIPT_DEFINERS,
        grammar: Some(Grammar {
            parser: || tree_sitter_javascript::LANGUAGE.into(),
            callables: SCRIPT_CALLABLES,
            containers: SCRIPT_CONTAINERS,
            imports: SCRIPT_IMPORTS,
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "typescript",
        extensions: &["ts", "mts", "cts"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: SCRIPT_QUOTES,
        definers: SCRIPT_DEFINERS,
        grammar: Some(Grammar {
            parser: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            callables: SCRIPT_CALLABLES,
            containers: SCRIPT_CONTAINERS,
            imports: SCRIPT_IMPORTS,
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "tsx",
        extensions: &["tsx"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: SCRIPT_QUOTES,
        definers: SCRIPT_DEFINERS,
        grammar: Some(Grammar {
            parser: || tree_sitter_typescript::LANGUAGE_TSX.into(),
            callables: SCRIPT_CALLABLES,
            containers: SCRIPT_CONTAINERS,
            imports: SCRIPT_IMPORTS,
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "go",
        extensions: &["go"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: &["\"", "`", "'"],
        definers: &["func", "type", "const", "var"],
        grammar: Some(Grammar {
            parser: || tree_sitter_go::LANGUAGE.into(),
            callables: &["function_declaration", "method_declaration", "func_literal"],
            containers: &[],
            imports: &["import_declaration", "package_clause"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "java",
        extensions: &["java"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: &["\"\"\"", "\"", "'"],
        definers: &["class", "interface", "enum", "record"],
        grammar: Some(Grammar {
            parser: || tree_sitter_java::LANGUAGE.into(),
            callables: &[
                "method_declaration",
                "constructor_declaration",
                "compact_constructor_declaration",
                "lambda_expression",
            ],
            containers: &[
                "class_declaration",
                "interface_declaration",
                "enum_declaration",
                "record_declaration",
                "annotation_type_declaration",
            ],
            imports: &["import_declaration", "package_declaration"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "c",
        extensions: &["c", "h"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: QUOTES,
        definers: &["struct", "enum", "union", "define"],
        grammar: Some(Grammar {
            parser: || tree_sitter_c::LANGUAGE.into(),
            callables: &["function_definition"],
            containers: &["preproc_ifdef", "preproc_if", "linkage_specification"],
            imports: &["preproc_include"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "cpp",
        extensions: &["cpp", "cc", "cxx", "hpp", "hh", "hxx", "ipp", "inl"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: QUOTES,
        definers: &["class", "struct", "enum", "union", "namespace", "concept", "using", "define"],
        grammar: Some(Grammar {
            parser: || tree_sitter_cpp::LANGUAGE.into(),
            callables: &["function_definition", "lambda_expression"],
            containers: &[
                "class_specifier",
                "struct_specifier",
                "namespace_definition",
                "template_declaration",
                "preproc_ifdef",
                "preproc_if",
                "linkage_specification",
            ],
            imports: &["preproc_include", "using_declaration"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "csharp",
        extensions: &["cs"],
        line_comment: "//",
        block_comment: C_COMMENT,
        strings: &["\"\"\"", "\"", "'"],
        definers: &["class", "interface", "struct", "enum", "record", "namespace", "delegate"],
        grammar: Some(Grammar {
            parser: || tree_sitter_c_sharp::LANGUAGE.into(),
            callables: &[
                "method_declaration",
                "constructor_declaration",
                "destructor_declaration",
                "operator_declaration",
                "conversion_operator_declaration",
                "local_function_statement",
                "accessor_declaration",
                "anonymous_method_expression",
                "lambda_expression",
            ],
            containers: &[
                "class_declaration",
                "interface_declaration",
                "struct_declaration",
                "record_declaration",
                "namespace_declaration",
                "property_declaration",
                "indexer_declaration",
            ],
            imports: &["using_directive", "extern_alias_directive"],
            body: BodyStyle::Braces,
        }),
    },
    Language {
        name: "ruby",
        extensions: &["rb", "rake", "gemspec"],
        line_comment: "#",
        block_comment: Some(("=begin", "=end")),
        strings: QUOTES,
        definers: &["def", "class", "module", "attr_reader", "attr_accessor"],
        grammar: Some(Grammar {
            parser: || tree_sitter_ruby::LANGUAGE.into(),
            callables: &["method", "singleton_method"],
            containers: &["class", "module", "singleton_class"],
            imports: &["call"],
            body: BodyStyle::Lines,
        }),
    },
    plain("php", &["php"], "//", C_COMMENT),
    plain("kotlin", &["kt", "kts"], "//", C_COMMENT),
    plain("swift", &["swift"], "//", C_COMMENT),
    plain("scala", &["scala"], "//", C_COMMENT),
    plain("dart", &["dart"], "//", C_COMMENT),
    plain("zig", &["zig"], "//", None),
    plain("elixir", &["ex", "exs"], "#", None),
    plain("erlang", &["erl", "hrl"], "%", None),
    plain("haskell", &["hs"], "--", Some(("{-", "-}"))),
    plain("lua", &["lua"], "--", None),
    plain("perl", &["pl", "pm"], "#", None),
    plain("r", &["r", "R"], "#", None),
    plain("julia", &["jl"], "#", None),
    plain("bash", &["sh", "bash", "zsh"], "#", None),
    plain("sql", &["sql"], "--", C_COMMENT),
    plain("cython", &["pyx", "pxd"], "#", None),
    plain("css", &["css", "scss", "less"], "", C_COMMENT),
    plain("protobuf", &["proto"], "//", C_COMMENT),
    plain("toml", &["toml"], "#", None),
    plain("yaml", &["yaml", "yml"], "#", None),
    plain("json", &["json", "jsonc", "json5"], "", None),
    plain("html", &["html", "htm", "vue", "svelte"], "", Some(("<!--", "-->"))),
    plain("xml", &["xml", "svg"], "", Some(("<!--", "-->"))),
    plain("markdown", &["md", "markdown"], "", None),
    plain("text", &["txt", "rst", "adoc"], "", None),
    plain("makefile", &["mk"], "#", None),
    plain("dockerfile", &["dockerfile"], "#", None),
    plain("ini", &["ini", "cfg", "conf", "properties"], "#", None),
];

/// Words that define something in languages without a row of their own for it.
const DEFINERS: &[&str] = &[
    "class",
    "def",
    "defmodule",
    "enum",
    "fn",
    "fun",
    "func",
    "function",
    "interface",
    "module",
    "object",
    "protocol",
    "struct",
    "sub",
    "table",
    "trait",
    "type",
    "message",
    "service",
];

const fn plain(
    name: &'static str,
    extensions: &'static [&'static str],
    line_comment: &'static str,
    block_comment: Option<(&'static str, &'static str)>,
) -> Language {
    Language { name, extensions, line_comment, block_comment, strings: QUOTES, definers: DEFINERS, grammar: None }
}

/// The language of a file by its name.
pub fn language_of(path: &str) -> Option<&'static Language> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = match name {
        "Makefile" | "makefile" | "GNUmakefile" => "mk",
        "Dockerfile" => "dockerfile",
        "Rakefile" | "Gemfile" => "rb",
        _ => name.rsplit_once('.').map(|(_, extension)| extension)?,
    };
    let at = BY_EXTENSION.binary_search_by_key(&extension, |(known, _)| known).ok()?;
    Some(BY_EXTENSION[at].1)
}

/// Every extension with the first language that has it, sorted: each file of a tree is looked up.
static BY_EXTENSION: LazyLock<Vec<(&'static str, &'static Language)>> = LazyLock::new(|| {
    let of = |language: &'static Language| language.extensions.iter().map(move |extension| (*extension, language));
    let mut all: Vec<_> = LANGUAGES.iter().flat_map(of).collect();
    all.sort_by_key(|(extension, _)| *extension);
    all.dedup_by_key(|(extension, _)| *extension);
    all
});

/// The language with this name.
pub fn language_named(name: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.name == name)
}

impl Language {
    /// Whether text of this language is code, which can be truncated by its structure.
    pub fn is_code(&self) -> bool {
        self.grammar.is_some()
    }

    /// A comment of one line.
    pub fn comment(&self, text: &str) -> String {
        match (self.line_comment, self.block_comment) {
            ("", Some((open, close))) => format!("{open} {text} {close}"),
            ("", None) => text.to_owned(),
            (sign, _) => format!("{sign} {text}"),
        }
    }
}
