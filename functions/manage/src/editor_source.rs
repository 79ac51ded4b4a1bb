//! Editors of settings, each for a write at one moment.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::edit::SettingsEditor;
use posthaste_core::model::{AddressPolicy, PublishUrls};
use posthaste_ports::{Clock, Entropy, Ports};

use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The source of editors, with the rules of this installation about endpoints.
pub(crate) struct EditorSource<P: Ports> {
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    addresses: SharedPort<P, AddressPolicy>,
    own_publish_urls: SharedPort<P, PublishUrls>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EditorSource<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            addresses: SharedPort::new(manage, |it| &it.address_policy),
            own_publish_urls: SharedPort::new(manage, |it| &it.own_publish_urls),
        }
    }
}

impl<P: Ports> EditorSource<P> {
    /// An editor for a write at this moment.
    pub(crate) fn new_editor(&self) -> SettingsEditor<'_, impl Fn(&mut [u8])> {
        SettingsEditor {
            random: |bytes: &mut [u8]| self.entropy.fill(bytes),
            now: self.clock.now(),
            addresses: &self.addresses,
            own_publish_urls: &self.own_publish_urls,
        }
    }
}
