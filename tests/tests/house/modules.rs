//! The modules of a crate, and in which files the names lie that they mention. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemFn, ItemImpl, ItemMod, ItemUse, UseTree};

/// Most names that hand on one another.
const HANDED_ON_MAX: usize = 16;

/// A module's path from its crate's root.
type ModulePath = Vec<String>;

/// The files that each file mentions.
pub(crate) type Arrows = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The modules of a crate.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// The names that `use` lines bring in, each with its path.
    names: BTreeMap<String, Vec<String>>,
    /// The paths that `use` lines bring in whole.
    globs: Vec<Vec<String>>,
    /// The names of the items that are defined here.
    items: BTreeSet<String>,
    /// Paths that are mentioned outside of `use` lines.
    mentions: BTreeSet<Vec<String>>,
}

/// The target of a path: a module, and whether it is the module itself or a name in it.
struct Place {
    module: ModulePath,
    is_module: bool,
}

impl Modules {
    /// The modules of the crate that begins with a file.
    pub(crate) fn of(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read(root, &[]);
        modules
    }

    /// The files that each file needs. A name that a file only hands on counts as lying where it
    /// was defined.
    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (path, module) in &self.0 {
            let used = module
                .names
                .values()
                .chain(&module.globs)
                .chain(&module.mentions);
            let places = used.filter_map(|it| self.place(path, it, HANDED_ON_MAX));
            for file in places
                .map(|place| &self.0[&place.module].file)
                .filter(|file| **file != module.file)
            {
                arrows
                    .entry(module.file.clone())
                    .or_default()
                    .insert(file.clone());
            }
        }
        arrows
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
        }
        self.0.insert(path.to_owned(), module);
        let children = items.iter().filter_map(|item| {
            if let Item::Mod(child) = item {
                Some(child)
            } else {
                None
            }
        });
        for child in children.filter(|child| !is_test(&child.attrs)) {
            let name = child.ident.to_string();
            let path = [path, std::slice::from_ref(&name)].concat();
            match &child.content {
                Some((_, items)) => self.add(items, file, &folder.join(&name), &path),
                None => self.read(&file_of(folder, &name), &path),
            }
        }
    }

    /// The target of a path that a module mentions; `None` if in another crate. A name may be
    /// handed on so often.
    fn place(&self, from: &ModulePath, path: &[String], handed_on: usize) -> Option<Place> {
        let mut place = Place {
            module: from.clone(),
            is_module: true,
        };
        let mut names = path;
        if path.first()? == "crate" {
            (place.module, names) = (Vec::new(), &path[1..]);
        }
        for (index, name) in names.iter().enumerate() {
            let is_relative = path[0] == "crate" || index > 0;
            place = self.step(place, name, is_relative, handed_on)?;
            if !place.is_module {
                break;
            }
        }
        Some(place)
    }

    fn step(&self, place: Place, name: &str, is_relative: bool, handed_on: usize) -> Option<Place> {
        let mut module = place.module;
        match name {
            "self" => {
                return Some(Place {
                    module,
                    is_module: true,
                });
            }
            "super" => {
                module.pop()?;
                return Some(Place {
                    module,
                    is_module: true,
                });
            }
            _ => {}
        }
        let child = [module.as_slice(), &[name.to_owned()]].concat();
        if self.0.contains_key(&child) {
            return Some(Place {
                module: child,
                is_module: true,
            });
        }
        let here = &self.0[&module];
        if let Some(path) = here
            .names
            .get(name)
            .filter(|path| handed_on > 0 && path.len() > 1)
        {
            let place = self.place(&module, path, handed_on - 1);
            return place.or(is_relative.then_some(Place {
                module,
                is_module: false,
            }));
        }
        if handed_on > 0 && !here.items.contains(name) {
            let mut whole = here
                .globs
                .iter()
                .filter_map(|path| self.place(&module, path, handed_on - 1));
            if let Some(place) = whole.find(|place| self.0[&place.module].items.contains(name)) {
                return Some(Place {
                    is_module: false,
                    ..place
                });
            }
        }
        is_relative.then_some(Place {
            module,
            is_module: false,
        })
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
                self.name(before.last().cloned(), before.to_owned());
            }
            UseTree::Name(name) => self.name(Some(name.ident.to_string()), with(&name.ident)),
            UseTree::Rename(name) => self.name(Some(name.rename.to_string()), with(&name.ident)),
            UseTree::Glob(_) => self.globs.push(before.to_owned()),
        }
    }

    fn name(&mut self, name: Option<String>, path: Vec<String>) {
        // `as _` brings several things under one name.
        let name = name
            .filter(|name| name != "_")
            .unwrap_or_else(|| path.join("::"));
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
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.mentions.insert(
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
