//! Backends from their settings.
