//! The modules of a crate, and the paths that they mention. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemFn, ItemImpl, ItemMod, ItemUse, Type, UseTree};

/// A module's path from its crate's root.
pub(crate) type ModulePath = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
pub(crate) struct Modules {
    by_path: BTreeMap<ModulePath, Module>,
    /// The files that have more than `mod` and `use` items. Any other is a mere list of names.
    files_with_code: BTreeSet<PathBuf>,
}

#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    /// All paths that are mentioned.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// The names that `use` lines bring in, each with its path.
    pub(crate) names: BTreeMap<String, Vec<String>>,
    /// The paths that `use` lines bring in whole.
    pub(crate) globs: Vec<Vec<String>>,
    /// The names of the items that are defined here.
    pub(crate) items: BTreeSet<String>,
    /// The names of the types that have methods here, those of traits left out.
    pub(crate) types_with_methods: BTreeSet<String>,
}

impl Modules {
    /// The modules of the crate that begins with a file.
    pub(crate) fn of(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read(root, &[]);
        modules
    }

    pub(crate) fn get(&self, path: &[String]) -> Option<&Module> {
        self.by_path.get(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ModulePath, &Module)> {
        self.by_path.iter()
    }

    pub(crate) fn has_code(&self, file: &Path) -> bool {
        self.files_with_code.contains(file)
    }

    fn read(&mut self, file: &Path, path: &[String]) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let syntax =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let is_first = path.is_empty() || file.ends_with("mod.rs");
        let folder = if is_first {
            file.with_file_name("")
        } else {
            file.with_extension("")
        };
        self.add(&syntax.items, file, &folder, path);
    }

    fn add(&mut self, items: &[Item], file: &Path, folder: &Path, path: &[String]) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items {
            module.items.extend(name_of(item));
            module.visit_item(item);
            if !matches!(item, Item::Mod(_) | Item::Use(_)) {
                self.files_with_code.insert(file.to_owned());
            }
        }
        self.by_path.insert(path.to_owned(), module);
        let children = items.iter().filter_map(|item| {
            if let Item::Mod(child) = item {
                Some(child)
            } else {
                None
            }
        });
        // A file of another crate is read there.
        let is_own = |child: &&ItemMod| !child.attrs.iter().any(|it| it.path().is_ident("path"));
        for child in children.filter(|it| !is_test(&it.attrs)).filter(is_own) {
            let name = child.ident.to_string();
            let path = [path, std::slice::from_ref(&name)].concat();
            match &child.content {
                Some((_, items)) => self.add(items, file, &folder.join(&name), &path),
                None => self.read(&file_of(folder, &name), &path),
            }
        }
    }
}

impl Module {
    /// Takes in each name that a `use` brings.
    fn import(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                if let Some(name) = before.last() {
                    self.name(name.clone(), before.to_owned());
                }
            }
            UseTree::Name(name) => self.name(name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) => self.name(name.rename.to_string(), with(&name.ident)),
            UseTree::Glob(_) => {
                self.paths.insert(before.to_owned());
                self.globs.push(before.to_owned());
            }
        }
    }

    fn name(&mut self, name: String, path: Vec<String>) {
        self.paths.insert(path.clone());
        self.names.insert(name, path);
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.import(&item.tree, &[]);
        }
    }

    /// Modules are read by themselves.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test(&item.attrs) {
            self.types_with_methods.extend(type_with_methods(item));
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.insert(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }
}

/// The name of an item that others may ask for through a `use` of all.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The name of the type that an `impl` gives methods of its own.
fn type_with_methods(item: &ItemImpl) -> Option<String> {
    let has_methods = item.items.iter().any(|it| matches!(it, ImplItem::Fn(_)));
    match &*item.self_ty {
        Type::Path(path) if item.trait_.is_none() && has_methods => {
            let last = path.path.segments.last()?;
            Some(last.ident.to_string())
        }
        _ => None,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|it| it == "test")
    })
}

fn file_of(folder: &Path, module: &str) -> PathBuf {
    let file = folder.join(format!("{module}.rs"));
    if file.exists() {
        file
    } else {
        folder.join(module).join("mod.rs")
    }
}
