//! presets
/// Preset
pub enum Preset {}
impl Preset {
    /// names
    pub fn names() -> Vec<&'static str> {
        vec![]
    }
}
