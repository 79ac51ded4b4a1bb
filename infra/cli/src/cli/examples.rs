//! The examples below the options of `--help`. A paragraph is a section of the manual page.

pub(super) const FIRST_STEPS: &str = "\
First steps:
  posthaste demo                                    watch deliveries, retries and a dead letter
  posthaste serve --allow-endpoints 127.0.0.1       run a server for endpoints on this machine
  posthaste listen                                  receive webhooks in a second terminal
  posthaste apply -f topics.yaml                    create topics and subscriptions
  posthaste publish orders -f event.json            publish an event to the topic orders";

pub(super) const SERVE: &str = "\
Examples:
  posthaste serve --allow-endpoints 127.0.0.1       for endpoints on this machine
  posthaste serve --listen 8093 --config topics.yaml
  posthaste serve --data-dir /var/lib/posthaste --public-url https://hooks.example.com";

pub(super) const CHECK: &str = "\
Examples:
  posthaste check /var/lib/posthaste";

pub(super) const BACKUP: &str = "\
Examples:
  posthaste backup /backups/2026-11-29
  posthaste backup /backups/2026-11-29 --url https://hooks.example.com --key KEY
  posthaste backup /backups/2026-11-29 --data /var/lib/posthaste     of a server that has ended";

pub(super) const RESTORE: &str = "\
Examples:
  posthaste restore /backups/2026-11-29 --data /var/lib/posthaste";

pub(super) const LISTEN: &str = "\
Examples:
  posthaste listen --secret whsec_...               verify signatures
  posthaste listen --answer 503                     try out retries
  posthaste listen --port 9001 --delay 2s           a second, slow endpoint";

pub(super) const APPLY: &str = "\
Examples:
  posthaste apply -f topics.yaml
  posthaste apply -f topics.yaml --keep --dry-run   change only the members that the file names
  posthaste apply -f topics.yaml --url https://hooks.example.com --key KEY";

pub(super) const EXPORT: &str = "\
Examples:
  posthaste topics export > topics.yaml
  (umask 077; posthaste topics export --secrets > moved.yaml)     to apply on another server";

pub(super) const CREATE_TOPIC: &str = "\
Examples:
  posthaste topics create orders
  posthaste topics create orders inputSchema=EventGrid defaultTimeToLive=P1D";

pub(super) const CREATE_SUBSCRIPTION: &str = "\
Examples:
  posthaste subscriptions create orders billing --endpoint https://billing.example.com/hooks
  posthaste subscriptions create orders crm --endpoint https://crm.example.com/hooks \\
      'filter.includedEventTypes=[order.paid]' retryPolicy.maxDeliveryAttempts=8";

pub(super) const SET: &str = "\
Examples:
  posthaste subscriptions set orders billing retryPolicy.maxDeliveryAttempts=8
  posthaste subscriptions set orders billing 'retryPolicy.schedule=[PT1M, PT5M]'
  posthaste subscriptions set orders billing endpoint.timeout=null     the default again";

pub(super) const PUBLISH: &str = "\
Examples:
  posthaste publish orders -f event.json
  posthaste publish orders -f - --time-to-live PT10M < event.json
  posthaste publish orders -f events.jsonl --rate auto
  posthaste publish orders -f events.jsonl --rate 500 --tier bulk";

pub(super) const AUDIT: &str = "\
Examples:
  posthaste audit --since yesterday
  posthaste audit --topic orders --from 2026-11-21T10:00:00Z --json";

pub(super) const DOCTOR: &str = "\
Examples:
  posthaste doctor
  posthaste doctor --endpoints
  posthaste doctor --url https://hooks.example.com --key KEY --json";

pub(super) const ROTATE: &str = "\
Examples:
  posthaste subscriptions rotate-secret orders billing --overlap PT12H
  posthaste subscriptions rotate-secret orders billing --overlap PT0S     after a leak";

pub(super) const TEST: &str = "\
Examples:
  posthaste subscriptions test orders billing
  posthaste subscriptions test orders billing -f event.json";

pub(super) const DEAD_LETTERS: &str = "\
Examples:
  posthaste dead-letters list
  posthaste dead-letters list orders billing --from 2026-11-21T10:00:00Z
  posthaste dead-letters list orders billing --reason MaxDeliveryAttemptsExceeded";

pub(super) const REPLAY: &str = "\
Examples:
  posthaste dead-letters replay orders billing --dry-run
  posthaste dead-letters replay orders billing --from 2026-11-21T10:00:00Z --rate 10 --wait";

pub(super) const RESOLVE: &str = "\
Examples:
  posthaste dead-letters resolve orders billing --reason EndpointGone --dry-run
  posthaste dead-letters resolve orders billing --to 2026-11-21T10:00:00Z";

pub(super) const DELETE_DEAD_LETTERS: &str = "\
Examples:
  posthaste dead-letters delete orders billing --all --dry-run
  posthaste dead-letters delete orders billing --type order.cancelled";

pub(super) const EXPORT_DEAD_LETTERS: &str = "\
Examples:
  posthaste dead-letters export --include-resolved --output moved
  posthaste dead-letters export orders billing --since yesterday > letters.jsonl";

pub(super) const IMPORT_DEAD_LETTERS: &str = "\
Examples:
  posthaste dead-letters import moved/dead-letters.jsonl --dry-run
  posthaste dead-letters import moved/dead-letters.jsonl --url https://hooks.example.com --key KEY";

pub(super) const EVENTS_SHOW: &str = "\
Examples:
  posthaste events show order-1001
  posthaste events show msg_018bcfe568007abc8def0123456789ab-0
  posthaste events show ORDERS/BILLING/2026/11/21/10/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json
  posthaste events show orders order-1001 --payload
  posthaste events show orders order-1001 --from 2026-11-21T10:00:00Z
  posthaste events show orders -- -1001";

pub(super) const EVENTS_REPLAY: &str = "\
Examples:
  posthaste events replay orders billing --result failed --from 2026-11-21T14:00:00Z --dry-run
  posthaste events replay orders billing --from 2026-11-21T14:00:00Z --rate 10 --wait";

pub(super) const EVENTS_LIST: &str = "\
Examples:
  posthaste events list orders --result dead-lettered
  posthaste events list orders --subscription billing --status 5xx --from 2026-11-21T10:00:00Z";

pub(super) const EVENTS_RESEND: &str = "\
Examples:
  posthaste events resend orders billing order-1001";

pub(super) const EVENTS_CANCEL: &str = "\
Examples:
  posthaste events cancel orders order-1001";

pub(super) const ATTEMPTS: &str = "\
Examples:
  posthaste attempts list orders billing --status 503
  posthaste attempts list orders billing --follow";

pub(super) const COMPLETIONS: &str = "\
Where shells look:
  bash    posthaste completions bash > ~/.local/share/bash-completion/completions/posthaste
  zsh     posthaste completions zsh > ~/.zfunc/_posthaste         (~/.zfunc must be in fpath)
  fish    posthaste completions fish > ~/.config/fish/completions/posthaste.fish
  elvish  posthaste completions elvish >> ~/.config/elvish/rc.elv
  PowerShell  posthaste completions powershell >> $PROFILE";

pub(super) const MAN: &str = "\
Examples:
  posthaste man ~/.local/share/man/man1             then: man posthaste-publish";
