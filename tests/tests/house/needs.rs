//! The files that each file of a crate needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::{ModulePath, Modules};

/// The files that each file needs.
pub(crate) type Arrows = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Draws the arrows of a crate. Of a name that other files hand on, a file needs the one that
/// defines the name and each one with code of its own that hands it on.
pub(crate) fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for (module_path, module) in modules.iter() {
        let needed = arrows.entry(module.file.clone()).or_default();
        for path in &module.paths {
            let files = Walk::files_of(path, module_path, modules);
            needed.extend(files.into_iter().map(Path::to_owned));
        }
        needed.remove(&module.file);
    }
    arrows
}

/// The end of a path.
enum Target {
    Module(ModulePath),
    /// An item that this module defines.
    ItemOf(ModulePath),
    OtherCrate,
}

/// A walk along a path, name by name.
struct Walk<'a> {
    modules: &'a Modules,
    /// The files with code that hand on a name of the path.
    files: Vec<&'a Path>,
    /// Paths of the names that are being looked up. Modules may hand on all names to one another.
    open: Vec<ModulePath>,
}

impl<'a> Walk<'a> {
    /// The files that a module needs for a path that it mentions.
    fn files_of(path: &[String], module: &ModulePath, modules: &'a Modules) -> Vec<&'a Path> {
        let mut walk = Self {
            modules,
            files: Vec::new(),
            open: Vec::new(),
        };
        let target = walk.follow(path, module);
        // A function may have the name of a module beside it.
        if let Target::Module(path) = &target
            && let Some((name, parent)) = path.split_last()
        {
            walk.look_up_imported(name, parent);
        }
        if let Target::Module(path) | Target::ItemOf(path) = target {
            walk.files.extend(modules.get(&path).map(|it| &*it.file));
        }
        walk.files
    }

    fn follow(&mut self, path: &[String], from: &[String]) -> Target {
        let mut target = Target::Module(from.to_owned());
        for (index, name) in path.iter().enumerate() {
            let Target::Module(module) = &target else {
                break;
            };
            target = match self.look_up(name, module) {
                Some(target) => target,
                None if index == 0 => Target::OtherCrate,
                // A macro may define it.
                None => Target::ItemOf(module.clone()),
            };
        }
        target
    }

    /// The target of a name in a module; `None` if the module does not have it.
    fn look_up(&mut self, name: &str, module: &[String]) -> Option<Target> {
        match name {
            "crate" => return Some(Target::Module(ModulePath::new())),
            "self" => return Some(Target::Module(module.to_owned())),
            "super" => {
                let (_, parent) = module.split_last()?;
                return Some(Target::Module(parent.to_owned()));
            }
            _ => {}
        }
        let child = [module, &[name.to_owned()]].concat();
        if self.modules.get(&child).is_some() {
            return Some(Target::Module(child));
        }
        if self.modules.get(module)?.items.contains(name) {
            return Some(Target::ItemOf(module.to_owned()));
        }
        if self.open.contains(&child) {
            return None;
        }
        self.open.push(child);
        let target = self.look_up_imported(name, module);
        self.open.pop();
        target
    }

    /// The target of a name that a module has from elsewhere.
    fn look_up_imported(&mut self, name: &str, module: &[String]) -> Option<Target> {
        let importing = self.modules.get(module)?;
        let target = match importing.names.get(name) {
            Some(path) => self.follow(path, module),
            None => self.look_up_in_globs(name, module)?,
        };
        if self.modules.has_code(&importing.file) {
            self.files.push(&importing.file);
        }
        Some(target)
    }

    fn look_up_in_globs(&mut self, name: &str, module: &[String]) -> Option<Target> {
        let importing = self.modules.get(module)?;
        importing
            .globs
            .iter()
            .find_map(|path| match self.follow(path, module) {
                Target::Module(whole) => self.look_up(name, &whole),
                Target::ItemOf(_) | Target::OtherCrate => None,
            })
    }
}
