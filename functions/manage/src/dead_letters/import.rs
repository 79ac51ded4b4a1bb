//! Dead letters of another installation, which keep their keys and places.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, Request, State};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditEntry, ImportRequestView, ImportResponse};
use posthaste_core::model::{DEAD_LETTER_IMPORT_BYTES_MAX, DEAD_LETTER_IMPORT_OBJECTS_MAX};
use posthaste_core::stored::dead_letter::MovedObject;
use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::resolved::can_be_resolved;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::{AuditTrail, RequestCaller};
use crate::document::{BadImports, Problems};
use crate::extract::{parse_settings, read_body_of, require_json};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Objects that are written side by side.
const PUTS_AT_ONCE: usize = 16;

/// Put in dead letters of another installation
///
/// Each object is written under the key that it had, so that its dead letters keep their places,
/// ids and members, and so is the list of those that are resolved. An object that is there already
/// stays as it is, so that the same request may be sent again. A request with one bad object is
/// refused as a whole. Subscriptions need not exist. At most 100 objects and 4.25 MiB.
#[utoipa::path(post, path = "/dead-letters/import", tag = "dead letters",
    request_body(content = ImportRequestView),
    responses((status = 200, description = "What was written, and what was there already", body = ImportResponse),
        BadImports, Problems))]
pub(crate) async fn import_dead_letters<P: Ports>(
    State(importer): State<LetterImporter<P>>,
    State(audit): State<AuditTrail<P>>,
    RequestCaller(caller): RequestCaller,
    ImportBody(objects): ImportBody,
) -> ApiResult<ImportResponse> {
    let letters: usize = objects.iter().map(|(object, _)| object.letters.len()).sum();
    let asked = format!("{} objects with {letters} dead letters", objects.len());
    let entry = audit.new_entry(caller, AuditAction::ImportDeadLetters);
    let entry = entry.with_detail(&asked);
    audit
        .run_audited(entry, importer.import_objects(objects), with_counts)
        .await
}

/// Objects of a request, each with what is resolved in it. All of them are well formed.
pub(crate) struct ImportBody(Vec<(MovedObject, ResolvedLetters)>);

impl<S: Send + Sync> FromRequest<S> for ImportBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let bytes = read_body_of(request, DEAD_LETTER_IMPORT_BYTES_MAX).await?;
        match parse_objects(&bytes) {
            Some(objects) => Ok(Self(check_objects(objects)?)),
            None => Err(body_problem(&bytes).into()),
        }
    }
}

/// A request whose objects are JSON of any kind, or read with all of their members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenRequest<Object> {
    objects: Vec<Object>,
}

/// The objects of a request. The usual reader of bodies would not keep the dead letters as they are
/// written, and would refuse a producer's member that is there twice.
fn parse_objects(bytes: &[u8]) -> Option<Vec<MovedObject>> {
    let request: WrittenRequest<Box<RawValue>> =
        parse_json_object(std::str::from_utf8(bytes).ok()?)?;
    request
        .objects
        .iter()
        .map(|object| parse_json_object(object.get()))
        .collect()
}

/// Reads a JSON object; `None` also of an array, which serde would take in its place.
fn parse_json_object<T: DeserializeOwned>(json: &str) -> Option<T> {
    if !json.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// The problem of a request that cannot be read, in the words for all bodies.
fn body_problem(bytes: &[u8]) -> ApiProblem {
    parse_settings::<WrittenRequest<MovedObject<Value>>>(bytes)
        .err()
        .unwrap_or_else(|| ApiProblem::new(ProblemKind::BadRequest))
}

/// The objects, if each is well formed and there are as many as one request may have.
fn check_objects(
    objects: Vec<MovedObject>,
) -> Result<Vec<(MovedObject, ResolvedLetters)>, ApiProblem> {
    if !(1..=DEAD_LETTER_IMPORT_OBJECTS_MAX).contains(&objects.len()) {
        let found = objects.len();
        let detail =
            format!("expected 1 to {DEAD_LETTER_IMPORT_OBJECTS_MAX} objects, found {found}");
        return Err(member_problem("objects", &detail));
    }
    let mut keys = BTreeSet::new();
    let mut all = Vec::with_capacity(objects.len());
    for (place, object) in objects.into_iter().enumerate() {
        let member = format!("objects[{place}]");
        let states = object
            .check()
            .map_err(|error| member_problem(&member, &error.to_string()))?;
        if !keys.insert(object.object.clone()) {
            return Err(member_problem(&member, "the same object twice"));
        }
        all.push((object, states));
    }
    Ok(all)
}

fn member_problem(member: &str, detail: &str) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadRequest)
        .member(member)
        .detail(detail)
}

/// The writer of dead letters of another installation.
pub(crate) struct LetterImporter<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterImporter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
        }
    }
}

impl<P: Ports> LetterImporter<P> {
    async fn import_objects(
        &self,
        objects: Vec<(MovedObject, ResolvedLetters)>,
    ) -> ApiResult<ImportResponse> {
        let puts = objects.into_iter().map(|(object, states)| async move {
            let is_new = self.import_object(&object, &states).await?;
            let letters = object.letters.len() as u64;
            let resolved = states.places.len() as u64;
            Ok::<_, PortError>((is_new, letters, resolved))
        });
        let mut answer = ImportResponse::default();
        let mut puts = stream::iter(puts).buffer_unordered(PUTS_AT_ONCE);
        while let Some((is_new, letters, resolved)) = puts.try_next().await? {
            if is_new {
                answer.objects += 1;
                answer.dead_letters += letters;
                answer.resolved += resolved;
            } else {
                answer.left_objects += 1;
                answer.left_dead_letters += letters;
            }
        }
        Ok(JsonResponse::new(answer))
    }

    /// Writes an object. False if it is there already. The list of what is resolved comes first: an
    /// object without its list, left by a process that ended, would be there already the next time,
    /// and its letters would be sent again.
    async fn import_object(
        &self,
        object: &MovedObject,
        states: &ResolvedLetters,
    ) -> Result<bool, PortError> {
        let key = &object.object;
        let listed = self.dead_letters.list(key, None, 1).await?.objects;
        if listed.iter().any(|found| found.key == *key) {
            return Ok(false);
        }
        let has_list = can_be_resolved(key);
        if has_list {
            self.import_list(key, states).await?;
        }
        let put = self
            .dead_letters
            .put(key, object.to_stored(), PutCondition::IfAbsent);
        match put.await {
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::PreconditionFailed => return Ok(false),
            Err(error) => return Err(error),
        }
        if has_list && !states.places.is_empty() {
            // wake deletes lists without an object, and may have met it in between.
            let list = layout::resolved_letters_key(key);
            let put = self
                .dead_letters
                .put(&list, states.render(), PutCondition::IfAbsent);
            match put.await {
                Ok(_) => {}
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Writes the list of what is resolved in an object that is not there yet, in the place of one
    /// that a former object of this key left. One that another import of the object writes meanwhile
    /// stays.
    async fn import_list(&self, key: &str, states: &ResolvedLetters) -> Result<(), PortError> {
        let list = layout::resolved_letters_key(key);
        let condition = match self.dead_letters.get(&list).await? {
            Some(former) => PutCondition::IfMatch(former.etag),
            None if states.places.is_empty() => return Ok(()),
            None => PutCondition::IfAbsent,
        };
        let put = self.dead_letters.put(&list, states.render(), condition);
        match put.await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The entry with what became of the objects.
fn with_counts(entry: AuditEntry, answered: &JsonResponse<ImportResponse>) -> AuditEntry {
    let ImportResponse {
        objects,
        dead_letters,
        left_objects,
        ..
    } = answered.body();
    entry.with_detail(&format!(
        "{objects} objects with {dead_letters} dead letters, {left_objects} objects were there already"
    ))
}
