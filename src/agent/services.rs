//! What the agent serves and reports to: metrics, systemd.

use std::net::SocketAddr;

use anyhow::Result;
use crossbeam::channel::Sender;

use super::events::Event;
use super::metrics::Metrics;
use super::systemd;

/// The port for metrics, and what systemd knows.
pub struct Services {
    /// For what has events for the agent.
    news: Sender<Event>,
    metrics: Option<Metrics>,
    /// systemd has opened the port for metrics: it is not ours to change.
    has_socket: bool,
    /// The status that systemd was last sent.
    sent_status: String,
}

impl Services {
    /// Serves metrics on systemd's socket, if there is one. Fails if that cannot be used.
    pub fn new(news: Sender<Event>) -> Result<Self> {
        let listen = |listener| Metrics::listen(listener, news.clone());
        let metrics = systemd::metrics_socket().map(listen).transpose()?;
        let has_socket = metrics.is_some();
        Ok(Services { news, metrics, has_socket, sent_status: String::new() })
    }

    /// Serves metrics there, and nowhere else. Fails if the address cannot be had: then they are served
    /// where they were, if nobody has taken that meanwhile.
    pub fn serve_metrics(&mut self, wanted: Option<SocketAddr>) -> Result<()> {
        let served = self.metrics.as_ref().map(|metrics| metrics.address);
        if self.has_socket || served == wanted {
            return Ok(());
        }
        // The port first: the new address may differ in no more than the host.
        self.metrics = None;
        let serve = |address| Metrics::serve(address, self.news.clone());
        match wanted.map(serve).transpose() {
            Ok(metrics) => self.metrics = metrics,
            Err(err) => {
                self.metrics = served.and_then(|address| serve(address).ok());
                return Err(err);
            }
        }
        Ok(())
    }

    /// Whether metrics may be scraped.
    pub fn serves_metrics(&self) -> bool {
        self.metrics.is_some()
    }

    /// Sends systemd the status if it is another one.
    pub fn report_status(&mut self, summary: String) {
        if self.sent_status != summary {
            systemd::status(&summary);
            self.sent_status = summary;
        }
    }
}
