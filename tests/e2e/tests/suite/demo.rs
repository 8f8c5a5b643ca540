use anyhow::Result;

use crate::fixture;

#[test]
fn the_story_is_as_told() -> Result<()> {
    fixture::rig().map(|_| ())
}
