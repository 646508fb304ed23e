//! Outlines of code in every language that has a grammar.

use expect_test::{Expect, expect};
use lattice_context::chunk::ContextPriority;
use lattice_context::compress::outline::{outline, without_bodies};
use lattice_context::compress::{split, truncate};
use lattice_context::language::{LANGUAGES, language_named, language_of};
use lattice_context::tokens::Tokenizer;
use tree_sitter::Parser;

use crate::file;

#[track_caller]
fn check(path: &str, source: &str, expected: Expect) {
    let language = language_of(path).expect("a known language");
    let found = outline(language, source).expect("a language with a grammar");
    let rendered = without_bodies(language, source, &found, |_| false);
    assert!(!has_errors(path, &rendered.content), "the outline of {path} parses:\n{}", rendered.content);
    let removed: usize = rendered.elisions.iter().map(|elision| elision.last + 1 - elision.first).sum();
    let left = rendered.content.lines().count() - rendered.elisions.len();
    assert_eq!(removed + left, source.lines().count(), "every line is shown or counted");
    expected.assert_eq(&rendered.content);
}

pub(crate) fn has_errors(path: &str, source: &str) -> bool {
    let grammar = language_of(path).and_then(|language| language.grammar.as_ref()).expect("a grammar");
    let mut parser = Parser::new();
    parser.set_language(&(grammar.parser)()).expect("a grammar of this version");
    parser.parse(source, None).expect("a tree").root_node().has_error()
}

/// The example of the protocol: a body of 15 lines, and one of 10 below a docstring.
fn user_service() -> String {
    let filled = |count: usize, indent: &str, last: &str| -> String {
        let lines = (1..count).map(|n| format!("{indent}self.value_{n} = compute_something_useful({n}, self.db)\n"));
        lines.chain(std::iter::once(format!("{indent}{last}\n"))).collect()
    };
    format!(
        "import os\nfrom typing import List\n\nclass UserService:\n    \"\"\"Manages user operations.\"\"\"\n\n    \
         def __init__(self, db: Database):\n{}\n    def get_user(self, user_id: str) -> User:\n        \
         \"\"\"Fetch user by ID.\"\"\"\n{}",
        filled(15, "        ", "self.ready = True"),
        filled(10, "        ", "return user"),
    )
}

// proves: CE-72, CE-73, CE-75, CE-77
#[test]
fn the_example_of_the_protocol_keeps_its_shape() {
    check(
        "service.py",
        &user_service(),
        expect![[r#"
        import os
        from typing import List

        class UserService:
            """Manages user operations."""

            def __init__(self, db: Database):
                ...  # ... (15 lines)

            def get_user(self, user_id: str) -> User:
                """Fetch user by ID."""
                # ... (10 lines)
    "#]],
    );
}

// proves: CE-74, CE-76
#[test]
fn truncation_says_what_it_saved_and_refuses_where_nothing_is_saved() {
    let source = user_service();
    let chunk = file("service.py", &source, ContextPriority::Medium);
    let shown = truncate(&chunk, &Tokenizer::Estimate).expect("bodies can be left out");
    assert!(shown.tokens * 3 < chunk.tokens, "{} of {}", shown.tokens, chunk.tokens);
    assert!(shown.content.ends_with("# truncated: 2 bodies, 25 of 35 lines left out\n"), "{}", shown.content);
    assert_eq!(shown.metadata["truncated"], true);
    assert_eq!(shown.metadata["original_tokens"], chunk.tokens);
    assert_eq!(shown.metadata["original_lines"], source.lines().count());
    let signatures = file("api.py", "def a(x: int) -> int: ...\ndef b(y: str) -> str: ...\n", ContextPriority::Medium);
    assert_eq!(truncate(&signatures, &Tokenizer::Estimate), None, "there is nothing to gain");
}

#[test]
fn rust_keeps_generics_clauses_attributes_and_visibility() {
    check(
        "a.rs",
        "//! Docs.\nuse std::{\n    fs,\n    io,\n};\n\n/// Adds.\n#[must_use]\npub fn add<T: Into<u64>>(\n    one: T,\n    other: T,\n) -> u64\nwhere\n    T: Copy,\n{\n    let one: u64 = one.into();\n    one + other.into()\n}\n\nimpl Cart {\n    pub(crate) const fn new() -> Self {\n        let items = Vec::new();\n        Self { items }\n    }\n}\n",
        expect![[r#"
        //! Docs.
        use std::{
            fs,
            io,
        };

        /// Adds.
        #[must_use]
        pub fn add<T: Into<u64>>(
            one: T,
            other: T,
        ) -> u64
        where
            T: Copy,
        {
            // ... (2 lines)
        }

        impl Cart {
            pub(crate) const fn new() -> Self {
                // ... (2 lines)
            }
        }
    "#]],
    );
}

#[test]
fn typescript_keeps_modifiers_accessors_and_arrow_functions() {
    check(
        "a.ts",
        "import type { A } from './a';\nexport abstract class B<T> extends C implements D {\n  private x: number = 1;\n  constructor(private readonly a: A) {\n    super();\n    this.x = a.length * 20;\n  }\n  get size(): number {\n    const found = this.x;\n    return found + 100;\n  }\n  abstract g(): void;\n}\nexport const f = async <T>(x: T): Promise<T> => {\n  const later = await x;\n  return later as unknown as T;\n};\n",
        expect![[r#"
        import type { A } from './a';
        export abstract class B<T> extends C implements D {
          private x: number = 1;
          constructor(private readonly a: A) {
            // ... (2 lines)
          }
          get size(): number {
            // ... (2 lines)
          }
          abstract g(): void;
        }
        export const f = async <T>(x: T): Promise<T> => {
          // ... (2 lines)
        };
    "#]],
    );
}

#[test]
fn go_keeps_receivers_and_grouped_imports() {
    check(
        "a.go",
        "package a\n\nimport (\n\t\"fmt\"\n\tm \"math\"\n)\n\n// Area is documented.\nfunc (s *Square) Area(x, y float64) (float64, error) {\n\tfmt.Println(\"computing the area\")\n\treturn m.Abs(x * y), nil\n}\n",
        expect![[r#"
        package a

        import (
        	"fmt"
        	m "math"
        )

        // Area is documented.
        func (s *Square) Area(x, y float64) (float64, error) {
        	// ... (2 lines)
        }
    "#]],
    );
}

#[test]
fn java_keeps_annotations_generics_and_constructors() {
    check(
        "A.java",
        "package a;\nimport java.util.List;\n/** Docs. */\n@Deprecated\npublic class A<T extends B> implements C {\n    @Override\n    public <U> List<U> f(final U u) throws E {\n        System.out.println(\"something long\");\n        return List.of(u);\n    }\n    A() {\n        this.first = 1000000;\n        this.second = 20000;\n    }\n}\n",
        expect![[r#"
        package a;
        import java.util.List;
        /** Docs. */
        @Deprecated
        public class A<T extends B> implements C {
            @Override
            public <U> List<U> f(final U u) throws E {
                // ... (2 lines)
            }
            A() {
                // ... (2 lines)
            }
        }
    "#]],
    );
}

#[test]
fn ruby_keeps_every_kind_of_parameter() {
    check(
        "a.rb",
        "require 'set'\nmodule A\n  class B < C\n    attr_reader :x\n    # Docs.\n    def f(a, b = 1, *c, d:, **e, &g)\n      puts 'something that is long'\n      a + b\n    end\n    def self.make\n      new.tap do |made|\n        made.prepare_everything\n      end\n    end\n  end\nend\n",
        expect![[r#"
        require 'set'
        module A
          class B < C
            attr_reader :x
            # Docs.
            def f(a, b = 1, *c, d:, **e, &g)
              # ... (2 lines)
            end
            def self.make
              # ... (3 lines)
            end
          end
        end
    "#]],
    );
}

#[test]
fn cpp_keeps_templates_initialisers_and_operators() {
    check(
        "a.cpp",
        "#include <vector>\nusing std::vector;\nnamespace n {\ntemplate <typename T>\nclass A : public B {\n public:\n  explicit A(int x) : x_(x) {\n    prepare_everything(x);\n    prepare_even_more(x);\n  }\n  T operator+(const A& other) const noexcept {\n    auto result = x_ + other.x_;\n    return T(result);\n  }\n};\n}\n",
        expect![[r#"
        #include <vector>
        using std::vector;
        namespace n {
        template <typename T>
        class A : public B {
         public:
          explicit A(int x) : x_(x) {
            // ... (2 lines)
          }
          T operator+(const A& other) const noexcept {
            // ... (2 lines)
          }
        };
        }
    "#]],
    );
}

#[test]
fn c_keeps_signatures_over_several_lines() {
    check(
        "a.c",
        "#include <stdio.h>\n/* Docs. */\nstatic int add(int one,\n               int other)\n{\n    int sum = one + other;\n    return sum;\n}\n",
        expect![[r#"
        #include <stdio.h>
        /* Docs. */
        static int add(int one,
                       int other)
        {
            // ... (2 lines)
        }
    "#]],
    );
}

#[test]
fn csharp_keeps_attributes_and_accessors() {
    check(
        "A.cs",
        "using System;\nnamespace N\n{\n    [Serializable]\n    public class A : B\n    {\n        public int X\n        {\n            get\n            {\n                Console.WriteLine(\"reading the value\");\n                return x;\n            }\n        }\n        public async Task<int> F(int a = 1)\n        {\n            await Task.Delay(a);\n            return a + 1000;\n        }\n    }\n}\n",
        expect![[r#"
        using System;
        namespace N
        {
            [Serializable]
            public class A : B
            {
                public int X
                {
                    get
                    {
                        // ... (2 lines)
                    }
                }
                public async Task<int> F(int a = 1)
                {
                    // ... (2 lines)
                }
            }
        }
    "#]],
    );
}

#[test]
fn javascript_keeps_default_exports() {
    check(
        "a.jsx",
        "import React from 'react';\nexport default function App({ name }) {\n  const [x, set] = useState(0);\n  return <div onClick={() => set(x + 1)}>{name}</div>;\n}\n",
        expect![[r#"
        import React from 'react';
        export default function App({ name }) {
          // ... (2 lines)
        }
    "#]],
    );
}

#[test]
fn tsx_keeps_typed_components() {
    check(
        "a.tsx",
        "import * as React from 'react';\nexport function App({ name }: Props): JSX.Element {\n  const x = useState<number>(0);\n  return <div>{name}</div>;\n}\n",
        expect![[r#"
        import * as React from 'react';
        export function App({ name }: Props): JSX.Element {
          // ... (2 lines)
        }
    "#]],
    );
}

#[test]
fn every_grammar_of_the_table_fits_its_parser() {
    for language in LANGUAGES.iter().filter(|language| language.grammar.is_some()) {
        assert!(outline(language, "").is_some(), "{}", language.name);
    }
}

// proves: CE-105
#[test]
fn parts_of_a_large_file_begin_at_items_and_together_are_the_file() {
    let item = |n: usize| {
        format!("def function_{n}(x):\n    first = x + {n}\n    second = first * 2\n    return second\n\n\n")
    };
    let source: String = (0..600).map(item).collect();
    let found = language_named("python").and_then(|python| outline(python, &source));
    let parts = split::split(found.as_ref(), &source, 100);
    assert!(parts.len() > 20, "{} parts", parts.len());
    let lines: Vec<&str> = source.lines().collect();
    for part in &parts {
        assert!(lines[part.start].starts_with("def function_"), "{}", lines[part.start]);
        assert!(part.len() <= 100, "{part:?}");
    }
    let joined: String = parts.iter().map(|part| split::lines_of(&source, part)).collect();
    assert_eq!(joined, source);
}
