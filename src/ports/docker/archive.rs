//! Images on their way into Docker and out of it: as archives, and from registries.

use std::time::Duration;

use bollard::query_parameters::{ImportImageOptionsBuilder, TagImageOptionsBuilder};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::{ACTION, Docker, explained};
use crate::error::{Error, Result, ResultExt};
use crate::ports::process::Program;

/// Pulling gigabytes over a slow line.
const PULL: Duration = Duration::from_secs(1800);
/// Unpacking as much.
const LOAD: Duration = Duration::from_secs(1200);
const CHUNK: usize = 1 << 20;

impl Docker {
    /// Images as one archive, in which layers that they share are once.
    pub fn export(&self, names: &[&str]) -> impl Stream<Item = std::io::Result<impl AsRef<[u8]> + Send + 'static>> {
        let (docker, what) = (self.clone(), format!("export {}", names.join(", ")));
        self.api.export_images(names).map_err(move |error| docker.stream_error(&what, error))
    }

    /// Takes the images of such an archive.
    pub async fn load_archive(&self, archive: impl AsyncRead + Send + 'static) -> Result<()> {
        let options = ImportImageOptionsBuilder::new().quiet(true).build();
        let archive = ReaderStream::with_capacity(archive, CHUNK);
        let load = async {
            let mut told = std::pin::pin!(self.api.import_image_stream(options, archive, None));
            while let Some(line) = told.next().await {
                line.map_err(|error| explained(&self.endpoint, "load images", error))?;
            }
            Ok(())
        };
        self.limited(LOAD, "load images", load).await?
    }

    /// Gives an image another name.
    pub async fn tag(&self, image: &str, name: &str) -> Result<()> {
        let (repository, tag) =
            name.rsplit_once(':').ok_or_else(|| Error::failed(format!("{name} is no name with a tag")))?;
        let options = TagImageOptionsBuilder::new().repo(repository).tag(tag).build();
        let call = self.api.tag_image(image, Some(options));
        self.bounded(ACTION, &format!("tag {image} as {name}"), call).await
    }

    /// Takes a name from an image, which stays while it has others.
    pub async fn untag(&self, name: &str) -> Result<()> {
        self.remove_image(name).await
    }

    /// Pulls an image, by the engine's own program: that knows the user's logins and credential helpers.
    pub async fn pull(&self, reference: &str) -> Result<()> {
        let program =
            Program::new(self.endpoint.program()).own_group().args(["pull", "--quiet", reference]).limit(PULL);
        let program = self.child_env().into_iter().fold(program, |program, (name, value)| match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        });
        program
            .run()
            .await
            .map(drop)
            .with_context(|| format!("cannot pull {reference}"))
            .hint(format!("{} pull {reference}", self.endpoint.program()))
    }
}
